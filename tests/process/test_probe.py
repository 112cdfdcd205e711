"""Probe children for real: JAX on this machine, and interpreters crafted to hang, crash and babble.

Ids are rows of the field notes. Nothing here needs an accelerator; where none is, that is the test.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from needle.devices import probe, probing
from needle.devices.hints import NVIDIA_NODES
from needle.devices.inventory import cached_inventory, probed_inventory, static_inventory
from needle.devices.probing import STOPPED, cancel_probes
from tests.process.probe_kit import WORKING, ask

no_nvidia = pytest.mark.skipif(any(os.path.exists(node) for node in NVIDIA_NODES), reason="a GPU is here")


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_the_cpu_works_with_devices_and_bfloat16():
    outcome = ask()
    assert outcome.settled
    backend = outcome.backend
    assert (backend.platform, backend.status, backend.reason) == ("cpu", "works", probe.WORKS)
    assert backend.devices[0].id == "cpu:0"
    assert backend.bfloat16


def test_the_probe_by_hand_prints_one_line_of_json_and_its_exit_status_tells():
    command = [sys.executable, "-m", "needle.devices.probe", "cpu"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["status"] == "works"


@no_nvidia
def test_row_8_cuda_without_a_device_node_is_said_in_words():
    backend = ask("cuda").backend
    assert backend.status == "broken"
    assert backend.reason.startswith("no NVIDIA device node")
    assert "CPU" in backend.fix
    assert "Assertion" not in backend.reason + backend.fix


@no_nvidia
def test_row_7_a_cpu_that_stands_in_for_cuda_is_not_taken_for_it():
    command = [sys.executable, "-m", "needle.devices.probe", "cuda"]
    environment = {**os.environ, "JAX_PLATFORMS": "cuda,cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["reason"] == "JAX was asked for cuda and started the CPU instead"


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ("rocm", "no build for AMD GPU"),
        ("METAL", "no build for Apple GPU"),
        ("oneapi", "no build for oneapi"),
    ],
)
def test_row_19_a_platform_this_jax_has_no_build_for(platform, words):
    backend = ask(platform).backend
    assert backend.status == "broken"
    assert words in backend.reason
    assert "Traceback" not in backend.reason


def test_rows_5_and_9_and_the_doctors_variables_do_not_reach_the_probe():
    steering = {
        "JAX_PLATFORMS": "tpu",
        "JAX_PLATFORM_NAME": "cuda",
        "JAX_DEFAULT_DEVICE": "cuda",
        "JAX_ENABLE_X64": "",
    }
    assert ask(**steering).backend.status == "works"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("XLA_FLAGS", "--xla_no_such_flag=1", "XLA_FLAGS holds a flag this XLA does not know"),
        ("JAX_ENABLE_X64", "maybe", "JAX_ENABLE_X64 is 'maybe'"),
    ],
    ids=["32", "section-2"],
)
def test_a_bad_variable_is_named_with_its_remedy(name, value, words):
    backend = ask(**{name: value}).backend
    assert backend.status == "broken"
    assert words in backend.reason
    assert name in backend.fix


def test_an_interpreter_without_jax_is_told_the_extra(interpreter):
    bare = interpreter(f'exec "{sys.executable}" -I -S "$@"')
    backend = ask("cpu", bare).backend
    assert (backend.status, backend.reason) == ("absent", "JAX is not installed in this interpreter")
    assert backend.fix.endswith("-m pip install 'needle-tui[train]'")


HANGS = "import time\ntime.sleep(600)\n"
HANGING_FAMILY = """
trap '' TERM HUP INT
sleep 600 &
echo $! >> "$PIDS"
echo $$ >> "$PIDS"
wait
sleep 600
"""


def test_a_probe_that_hangs_ends_at_the_limit_with_its_whole_family(interpreter, tmp_path, wait_for):
    pids = tmp_path / "pids"
    started = time.monotonic()
    outcome = ask("cuda", interpreter(HANGING_FAMILY), timeout_s=1.0, PIDS=str(pids))
    assert time.monotonic() - started < 10
    assert not outcome.settled
    assert outcome.backend.status == "broken"
    assert "no answer within 1 s" in outcome.backend.reason
    assert "nvidia-smi" in outcome.backend.fix
    family = pids_in(pids)
    assert len(family) == 2
    wait_for(lambda: all(is_gone(pid) for pid in family), "the end of the probe's processes", 5)


def test_a_hang_after_the_answer_does_not_lose_it(interpreter):
    outcome = ask("cpu", interpreter(f"echo '{WORKING}'\nsleep 600"), timeout_s=1.0)
    assert outcome.backend.status == "works"


def test_what_a_probe_leaves_running_is_ended(interpreter, tmp_path, wait_for):
    pids = tmp_path / "pids"
    script = f"sleep 600 >/dev/null 2>&1 &\necho $! > '{pids}'\necho '{WORKING}'"
    assert ask("cpu", interpreter(script)).backend.status == "works"
    (left,) = pids_in(pids)
    wait_for(lambda: is_gone(left), "the end of what the probe left", 5)


def test_a_grandchild_that_keeps_the_output_open_does_not_hold_the_probe(interpreter):
    started = time.monotonic()
    assert ask("cpu", interpreter(f"sleep 600 &\necho '{WORKING}'")).backend.status == "works"
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "KILL", "ILL"])
def test_a_crash_is_reported_by_its_signal_and_last_words(interpreter, name):
    script = f"echo 'Traceback (most recent call last):' >&2\necho 'last words' >&2\nkill -{name} $$"
    outcome = ask("cuda", interpreter(script))
    assert not outcome.settled
    assert outcome.backend.status == "broken"
    assert f"SIG{name}" in outcome.backend.reason
    assert outcome.backend.reason.endswith("last words")


def test_a_crash_after_the_answer_is_told_beside_it(interpreter):
    backend = ask("cpu", interpreter(f"echo '{WORKING}'\nkill -SEGV $$")).backend
    assert backend.status == "works"
    assert "afterwards its process ended by SIGSEGV" in backend.reason


@pytest.mark.parametrize(
    "printed",
    [
        "hello",
        "{}",
        "[1, 2]",
        '{"platform": "tpu", "status": "works"}',
        '{"platform": "cuda", "status": "splendid"}',
        '{"platform": "cuda", "status": "works"',
        '{"platform": "cuda", "status": "untried"}',
    ],
)
def test_garbage_is_no_answer(interpreter, printed):
    outcome = ask("cuda", interpreter(f"echo '{printed}'"))
    assert (outcome.backend.status, outcome.settled) == ("broken", False)
    assert outcome.backend.reason == "the probe gave an answer that makes no sense (status 0)"
    assert "-m needle.devices.probe cuda" in outcome.backend.fix


def test_a_megabyte_of_binary_before_the_answer_is_passed_over(interpreter):
    script = f"head -c 3000000 /dev/urandom\necho\necho '{WORKING}'"
    assert ask("cpu", interpreter(script)).backend.status == "works"


def test_silence_is_no_answer_and_the_last_word_is_shown(interpreter):
    backend = ask("cuda", interpreter("echo 'python: bad magic number' >&2\nexit 3")).backend
    assert backend.reason == "the probe gave no answer (status 3): python: bad magic number"


@pytest.mark.parametrize("kind", ["missing", "directory", "not-executable"])
def test_an_interpreter_that_cannot_be_started_is_said_so(tmp_path, kind):
    path = tmp_path / "python"
    if kind == "directory":
        path.mkdir()
    elif kind == "not-executable":
        path.write_text("")
    backend = ask("cpu", path).backend
    assert backend.status == "broken"
    assert "cannot be started" in backend.reason


def test_probes_in_flight_can_be_ended_at_once(interpreter, tmp_path, wait_for):
    pids = tmp_path / "pids"
    outcomes = []
    thread = threading.Thread(
        target=lambda: outcomes.append(ask("cuda", interpreter(HANGING_FAMILY), PIDS=str(pids)))
    )
    thread.start()
    wait_for(lambda: len(pids_in(pids)) == 2, "the start of the probe")
    cancel_probes()
    thread.join(timeout=10)
    assert not thread.is_alive()
    (outcome,) = outcomes
    assert (outcome.backend.status, outcome.backend.reason, outcome.settled) == ("untried", STOPPED, False)
    wait_for(lambda: all(is_gone(pid) for pid in pids_in(pids)), "the end of the probe's processes", 5)


def test_a_probe_whose_parent_died_ends_by_itself(modules):
    environment = {
        **os.environ,
        "PYTHONPATH": modules(jax=HANGS),
        "JAX_PLATFORMS": "cpu",
        probe.LIMIT_VARIABLE: "1",
    }
    child = subprocess.Popen([sys.executable, probing.probe.__file__, "cpu"], env=environment)
    try:
        assert child.wait(timeout=20) == -signal.SIGALRM
    finally:
        child.kill()


def test_an_inventory_is_probed_and_remembered():
    told = []
    static = static_inventory()
    inventory = probed_inventory(static, on_backend=told.append)
    cpu = next(backend for backend in inventory.backends if backend.platform == "cpu")
    assert cpu.status == "works"
    assert cpu.devices[0].total_bytes == static.host.memory_total_bytes
    assert cpu in told
    assert inventory.probed_at > 0
    known = cached_inventory()
    assert known is not None
    assert [backend.status for backend in known.backends] == [
        backend.status for backend in inventory.backends
    ]


def test_a_platform_in_use_by_a_run_is_left_alone():
    told = []
    inventory = probed_inventory(static_inventory(), on_backend=told.append, in_use=("cpu",))
    assert "cpu" not in [backend.platform for backend in told]
    assert next(backend for backend in inventory.backends if backend.platform == "cpu").status == "untried"
