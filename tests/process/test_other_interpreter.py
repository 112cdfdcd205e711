"""A run in another interpreter than the one that starts it: the same packages in a second environment."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import psutil
import pytest

from needle.runs.reader import RunReader
from needle.runs.record import read_request, read_state

HERE = Path(sysconfig.get_paths()["purelib"])


def needle(*arguments, cwd, **variables):
    command = [sys.executable, "-P", "-m", "needle", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with `.venv-two`, which finds this environment's packages by a path file."""
    folder = tmp_path_factory.mktemp("project")
    venv.create(folder / ".venv-two", symlinks=True)
    (packages,) = (folder / ".venv-two").glob("lib/python3.*/site-packages")
    (packages / "ours.pth").write_text(f"{HERE}\nimport site; site.addsitedir({str(HERE)!r})\n")
    for metadata in HERE.glob("*.dist-info"):
        (packages / metadata.name).symlink_to(metadata)
    return folder


def test_every_interpreter_is_probed_when_asked_and_shown_with_what_works_in_it(project):
    done = needle("devices", "--all", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    inventory = json.loads(done.stdout)["inventory"]
    two = next(one for one in inventory["interpreters"] if one["label"] == ".venv-two")
    assert two["problem"] == ""
    assert two["packages"]["jax"]
    backends = {one["platform"]: one["status"] for one in inventory["elsewhere"][two["path"]]}
    assert backends["cpu"] == "works"


def test_a_run_trains_in_the_interpreter_that_was_chosen_and_is_not_probed_meanwhile(project, wait_for):
    """A folder named needle where it starts, as in another needle's checkout, is not taken for this one."""
    (project / "needle").mkdir()
    (project / "needle/__init__.py").write_text("raise SystemExit('the wrong needle')\n")
    variables = {"NEEDLE_RUNS": str(project / "runs")}
    arguments = ("finetune", "--sample", "--python", ".venv-two", "--backend", "cpu", "--epochs", "1000")
    started = needle(*arguments, "--detach", cwd=project, **variables)
    assert started.returncode == 0, started.stderr
    directory = project / "runs" / started.stdout.strip()
    reader = RunReader(directory)
    try:
        wait_for(lambda: reader.poll() and reader.events, "the trainer's first words", 60)
        pid = read_state(directory).pid
        assert psutil.Process(pid).cmdline()[0] == str(project / ".venv-two/bin/python")
        held = needle("devices", "--json", cwd=project, **variables)
        assert "cpu: works" not in held.stderr
        (cpu,) = (one for one in json.loads(held.stdout)["inventory"]["backends"] if one["platform"] == "cpu")
        assert cpu["held_by"] == directory.name
    finally:
        needle("runs", "stop", directory.name, "--now", cwd=project, **variables)
    wait_for(lambda: read_state(directory).phase in ("stopped", "killed"), "the end of the run", 60)
    request = read_request(directory)
    assert request.plan.interpreter == ".venv-two"
    assert request.plan.python.reason.startswith("asked for: Python")
    assert request.versions["python"].startswith("3.")
    assert request.plan.command_line[-4:] == ("--backend", "cpu", "--python", ".venv-two")
