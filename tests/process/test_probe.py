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
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from needle.devices import probe, probing
from needle.devices.hints import NVIDIA_NODES
from needle.devices.inventory import cached_inventory, probed_inventory, static_inventory
from needle.devices.probing import STOPPED, cancel_probes, run_probe

no_nvidia = pytest.mark.skipif(any(os.path.exists(node) for node in NVIDIA_NODES), reason="a GPU is here")
WORKING = json.dumps(
    {"platform": "cpu", "status": "works", "reason": "right", "devices": [], "bfloat16": True}
)


def ask(platform="cpu", python=sys.executable, *, packages=None, timeout_s=60.0, **variables):
    """A probe's outcome, with these variables beside the test's own."""
    environment = {**os.environ, **variables}
    return run_probe(
        platform, str(python), packages=packages or {}, environment=environment, timeout_s=timeout_s
    )


@pytest.fixture
def interpreter(tmp_path):
    """A shell script that stands for a Python; `$1` is the probe's file, `$2` the platform."""

    def make(body: str) -> Path:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def modules(tmp_path):
    """A directory of crafted Python modules, to be put first on the child's import path."""

    def make(**files: str) -> str:
        for name, text in files.items():
            path = tmp_path / "modules" / f"{name.replace('__slash__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return str(tmp_path / "modules")

    return make


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


PLUGIN_RAISES = """
def initialize():
    raise RuntimeError("hipInit failed: the runtime is 6.0,\\nthe driver is 5.7")
"""


def test_row_2_the_plugins_first_error_is_shown_and_not_what_follows_from_it(modules):
    path = modules(jax_plugins__slash__xla_rocm7=PLUGIN_RAISES)
    backend = ask("rocm", PYTHONPATH=path).backend
    assert backend.reason == (
        "its plugin raised RuntimeError: hipInit failed: the runtime is 6.0, the driver is 5.7"
    )


def test_row_2_a_plugins_known_error_has_its_remedy(modules):
    path = modules(
        jax_plugins__slash__xla_rocm7=PLUGIN_RAISES.replace("hipInit failed", "unable to find ld.lld")
    )
    assert "ld.lld is missing" in ask("rocm", PYTHONPATH=path).backend.reason


PLUGIN_CRASHES = """
import os, signal
def initialize():
    os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_row_21_a_plugin_that_crashes_is_reported_with_its_signal(modules):
    outcome = ask("cpu", PYTHONPATH=modules(jax_plugins__slash__crash=PLUGIN_CRASHES))
    assert not outcome.settled
    assert outcome.backend.status == "broken"
    assert "SIGSEGV" in outcome.backend.reason


def test_row_21_with_both_wheels_the_crash_names_them(modules):
    both = {"jax-cuda12-plugin": "0.10.2", "jax-rocm7-plugin": "0.10.2"}
    path = modules(jax_plugins__slash__crash=PLUGIN_CRASHES)
    backend = ask("cpu", packages=both, PYTHONPATH=path).backend
    assert "both cuda and rocm wheels" in backend.reason
    assert "uninstall one" in backend.fix


PLUGIN_BABBLES = """
import os
def initialize():
    os.write(1, b"Metal device set to: Apple M3\\n")
    print("{} more")
"""


def test_what_plugins_print_does_not_come_between_the_reader_and_the_answer(modules):
    path = modules(jax_plugins__slash__babble=PLUGIN_BABBLES)
    assert ask(PYTHONPATH=path).backend.status == "works"
    command = [sys.executable, "-m", "needle.devices.probe", "cpu"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["status"] == "works"
    assert "Metal device set to" in done.stderr


FAKE_JAX = """
import numpy
class _Device:
    device_kind = "Fake 9000"
    compute_capability = "9.9"
    def memory_stats(self):
        return {"bytes_limit": 100, "bytes_in_use": 7}
Array = numpy.ndarray
def local_devices(): return [_Device(), _Device()]
def default_backend(): return "gpu"
def value_and_grad(function): return function
"""
LISTS_ONLY = (
    FAKE_JAX
    + """
def jit(function):
    def fail(*_): raise RuntimeError("INTERNAL: unable to find ld.lld in PATH")
    return fail
"""
)
COUNTS_WRONG = (
    FAKE_JAX
    + """
class _Numbers(numpy.ndarray): pass
def jit(function):
    return lambda weight, batch: (numpy.float32(1.0), numpy.zeros((128, 32), "float32"))
"""
)
HANGS = "import time\ntime.sleep(600)\n"
NUMPY_FOR_FAKE = "from numpy import *\n"


def fake(modules, jax):
    return modules(jax__slash____init__=jax, jax__slash__numpy=NUMPY_FOR_FAKE)


def test_row_18_listing_devices_is_not_working(modules):
    backend = ask("rocm", PYTHONPATH=fake(modules, LISTS_ONLY)).backend
    assert backend.status == "broken"
    assert "ld.lld is missing" in backend.reason


def test_a_device_that_computes_wrong_numbers_does_not_work(modules):
    backend = ask("rocm", PYTHONPATH=fake(modules, COUNTS_WRONG)).backend
    assert (backend.status, backend.reason) == (
        "broken",
        "a float32 matrix product or its gradient came out wrong",
    )


WORKS_FAKE = (
    FAKE_JAX
    + """
def jit(function):
    def computed(weight, batch):
        product = batch.astype("float64") @ weight.astype("float64")
        return 0.5 * (product ** 2).sum(), (batch.astype("float64").T @ product).view(_Numbers)
    return computed
class _Numbers(numpy.ndarray):
    def astype(self, kind): return numpy.asarray(self, kind)
"""
)


def test_a_platform_this_program_never_heard_of_is_probed_like_any_other(modules):
    backend = ask("MyChip", PYTHONPATH=fake(modules, WORKS_FAKE)).backend
    assert (backend.status, backend.reason) == ("works", probe.WORKS)
    assert [(one.id, one.platform, one.kind) for one in backend.devices] == [
        ("MyChip:0", "MyChip", "Fake 9000"),
        ("MyChip:1", "MyChip", "Fake 9000"),
    ]


def test_row_16_a_metal_that_fails_at_its_first_operation_does_not_work(modules):
    jax = LISTS_ONLY.replace("INTERNAL: unable to find ld.lld in PATH", "failed to legalize 'mhlo.iota'")
    outcome = ask("METAL", PYTHONPATH=fake(modules, jax))
    assert outcome.backend.status == "broken"
    assert "matrix product and its gradient failed" in outcome.backend.reason
    assert "failed to legalize 'mhlo.iota'" in outcome.backend.reason


WRONG_CUDNN = """
import ctypes, os, sys
ctypes.CDLL(os.environ["FAKE_CUDNN"])
sys.stderr.write("E1027 15:10:59.0 1 cuda_dnn.cc:456] Loaded runtime CuDNN library: 9.10.1 but source was "
                 "compiled with: 9.13.1.  CuDNN library needs to have matching major version\\n")
"""


def test_row_22_a_wrong_cudnn_is_told_with_both_versions_and_the_path_it_came_from(modules, tmp_path):
    library = tmp_path / "usr/lib/libcudnn.so.9"
    library.parent.mkdir(parents=True)
    library.write_bytes(Path(find_spec("_ctypes").origin).read_bytes())
    failing = "FAILED_PRECONDITION: DNN library initialization failed. Look at the errors above"
    jax = WRONG_CUDNN + LISTS_ONLY.replace("INTERNAL: unable to find ld.lld in PATH", failing)
    backend = ask("cuda", PYTHONPATH=fake(modules, jax), FAKE_CUDNN=str(library)).backend
    assert backend.reason == (f"cuDNN 9.10.1 was loaded from {library}, but this JAX was built with 9.13.1")
    assert "unset LD_LIBRARY_PATH" in backend.fix


FULL = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 19.09GiB."
NO_PTXAS = "XLA requires ptxas version 11.8 or higher"


@pytest.mark.parametrize("said", [FULL, NO_PTXAS], ids=["23-and-37", "25"])
def test_what_may_pass_by_itself_is_not_remembered_for_long(modules, said):
    jax = LISTS_ONLY.replace("INTERNAL: unable to find ld.lld in PATH", said)
    outcome = ask("cuda", PYTHONPATH=fake(modules, jax))
    assert outcome.backend.status == "broken"
    assert said in outcome.backend.reason or "ptxas" in outcome.backend.reason
    assert not outcome.settled


PLUGIN_HANGS = """
import time
def initialize():
    time.sleep(600)
"""


def test_a_plugin_that_hangs_at_its_start_ends_at_the_limit(modules):
    started = time.monotonic()
    outcome = ask("cpu", timeout_s=3.0, PYTHONPATH=modules(jax_plugins__slash__wedged=PLUGIN_HANGS))
    assert time.monotonic() - started < 15
    assert not outcome.settled
    assert "no answer within 3 s" in outcome.backend.reason


def test_an_interpreter_without_jax_is_told_the_extra(interpreter):
    bare = interpreter(f'exec "{sys.executable}" -I -S "$@"')
    backend = ask("cpu", bare).backend
    assert (backend.status, backend.reason) == ("absent", "JAX is not installed in this interpreter")
    assert backend.fix.endswith("-m pip install 'needle-tui[train]'")


def test_a_jax_that_cannot_be_imported_is_told_without_a_traceback(modules):
    backend = ask(PYTHONPATH=modules(jax="import no_such_library_of_jax")).backend
    assert backend.status == "broken"
    assert backend.reason.startswith("JAX cannot be imported: ModuleNotFoundError")


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
