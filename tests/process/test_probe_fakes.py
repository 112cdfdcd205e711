"""Probes of fake plugins and a fake JAX that raise, crash, hang, babble, lie and work.

Ids are rows of the field notes.
"""

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from needle.devices import probe
from tests.process.probe_kit import ask

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


def test_a_jax_that_cannot_be_imported_is_told_without_a_traceback(modules):
    backend = ask(PYTHONPATH=modules(jax="import no_such_library_of_jax")).backend
    assert backend.status == "broken"
    assert backend.reason.startswith("JAX cannot be imported: ModuleNotFoundError")
