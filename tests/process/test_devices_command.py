"""`needle devices`, started for real: what it prints, what it remembers, and its exit status."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from needle.devices.hints import NVIDIA_NODES

no_nvidia = pytest.mark.skipif(any(os.path.exists(node) for node in NVIDIA_NODES), reason="a GPU is here")


def needle(*arguments, cwd=None, **variables):
    """Run the program; its output, talk and status."""
    command = [sys.executable, "-P", "-m", "needle", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path):
    """A folder with an environment that has no packages at all."""
    folder = tmp_path / "project"
    folder.mkdir()
    venv.create(folder / ".venv-bare", symlinks=True)
    return folder


def test_one_json_document_and_nothing_else_whose_parts_stay(project):
    done = needle("devices", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert list(document) == ["schema", "can_train", "findings", "inventory"]
    assert (document["schema"], document["can_train"]) == (1, True)
    inventory = document["inventory"]
    assert list(inventory) == [
        "host",
        "interpreters",
        "backends",
        "problems",
        "probed_at",
        "elsewhere",
    ]
    cpu = next(backend for backend in inventory["backends"] if backend["platform"] == "cpu")
    assert (cpu["status"], cpu["devices"][0]["id"]) == ("works", "cpu:0")
    bare = next(one for one in inventory["interpreters"] if one["label"] == ".venv-bare")
    assert bare["problem"] == "JAX is not installed here"
    assert ".venv-bare/bin/python -m ensurepip && " in bare["fix"]
    assert bare["path"] in inventory["elsewhere"]


def test_remembered_answers_come_without_a_probe(project):
    assert needle("devices", cwd=project).returncode == 0
    again = needle("devices", "--cached", cwd=project)
    assert "probing" not in again.stderr
    assert "cpu     ok        an operation and its gradient were right" in again.stdout


def test_an_interpreter_without_jax_cannot_train_and_the_status_says_so(project):
    done = needle("devices", "--json", "--python", ".venv-bare", cwd=project)
    inventory = json.loads(done.stdout)["inventory"]
    assert inventory["interpreters"][0]["label"] == ".venv-bare"
    assert "JAX is not installed" in json.loads(done.stdout)["findings"][0]["detail"]


def test_where_no_interpreter_can_train_the_status_is_1(project, tmp_path):
    """The Python that runs this has JAX, so it is kept from seeing any package."""
    (tmp_path / "blind.py").write_text(
        "import sys\n"
        "from needle import cli\n"
        "from needle.devices import sight\n"
        "blind = sight.installed_packages\n"
        "sight.installed_packages = lambda path: blind([])\n"
        "cli.main(['devices', '--json'])\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "blind.py")], cwd=project, capture_output=True, text=True, check=False
    )
    document = json.loads(done.stdout)
    assert (done.returncode, document["can_train"]) == (1, False)
    assert document["findings"][0]["title"] == "Training cannot run here"
    assert "needle-tui[train]" in document["findings"][0]["fix"]


def test_a_platform_of_any_name_is_tried_when_asked(project):
    done = needle("devices", "--json", "--backend", "MyChip", cwd=project)
    tried = {one["platform"]: one for one in json.loads(done.stdout)["inventory"]["backends"]}
    assert tried["MyChip"]["status"] == "broken"
    assert "no build for MyChip" in tried["MyChip"]["reason"]
    assert done.returncode == 0


def test_a_platform_forced_by_the_environment_is_tried_too(project):
    done = needle("devices", "--json", cwd=project, JAX_PLATFORMS="MyChip")
    tried = {one["platform"]: one["status"] for one in json.loads(done.stdout)["inventory"]["backends"]}
    assert (tried["MyChip"], tried["cpu"]) == ("broken", "works")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--python", "no-such"], "there is no interpreter no-such"),
        (["--python", "/bin/false"], "no working Python interpreter"),
    ],
)
def test_an_interpreter_that_is_not_here_is_bad_input(project, arguments, words):
    done = needle("devices", *arguments, cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_a_run_is_refused_before_it_starts_when_its_platform_or_python_cannot_train(project):
    common = ("finetune", "--sample", "--runs", str(project / "runs"))
    forced = needle(*common, "--backend", "MyChip", cwd=project)
    assert forced.returncode == 2
    assert "MyChip does not work here: this JAX has no build for MyChip" in forced.stderr
    named = needle(*common, "--python", ".venv-bare", cwd=project)
    assert named.returncode == 2
    assert ".venv-bare: JAX is not installed here" in named.stderr
    device = needle(*common, "--backend", "cpu", "--devices", "3", cwd=project)
    assert device.returncode == 2
    assert "cpu has no cpu:3" in device.stderr
    assert not Path(project / "runs").exists()


@no_nvidia
def test_row_8_a_forced_cuda_without_a_device_is_refused_in_words(project):
    done = needle("finetune", "--sample", cwd=project, JAX_PLATFORMS="cuda")
    assert done.returncode == 2
    assert "cuda does not work here: no NVIDIA GPU is seen" in done.stderr
