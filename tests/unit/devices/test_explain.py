"""What JAX and its libraries say, turned into words with a remedy. Ids are rows of the field notes."""

import pytest

from needle.devices.explain import Circumstances, explain, signal_words, telling_line
from needle.devices.probe import NO_JAX, NO_NVIDIA_NODE

PYTHON = "/opt/env/bin/python"


def explained(platform, text, *, driver="550.54.14", environment=None, system="linux"):
    found = explain(platform, text, Circumstances(PYTHON, driver, environment or {}, system))
    assert found is not None
    return found.reason, found.fix


ROWS = [
    ("1", "cuda", "Backend 'cuda' is not in the list of known backends: ['cpu', 'tpu'].",
     "no build for NVIDIA GPU (CUDA)", "/opt/env/bin/python -m pip install 'needle-tui[gpu]'"),
    ("1-old-jax", "rocm", "module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig'",
     "no build for AMD GPU (ROCm)", "needle-tui[rocm]"),
    ("2", "cuda", "its plugin raised RuntimeError: Unable to load cuDNN. Is it installed?",
     "cuDNN could not be loaded: its plugin raised RuntimeError: Unable to load cuDNN", "needle-tui[gpu]"),
    ("6", "cuda", "INTERNAL: no supported devices found for platform CUDA",
     "CUDA finds no GPU it may use", "CUDA_VISIBLE_DEVICES and nvidia-smi"),
    ("8", "cuda", NO_NVIDIA_NODE, "no NVIDIA device node", "use the CPU here"),
    ("11", "tpu", "ABORTED: libtpu.so already in use", "may be left over", "lsof"),
    ("11-held", "tpu", "ABORTED: The TPU is already in use by process with pid 2718466. Not attempting",
     "in use by process 2718466", "ps -fp 2718466"),
    ("14", "METAL", "UNIMPLEMENTED: default_memory_space is not supported.",
     "too new for jax-metal, which needs jax 0.4.38",
     "needle-tui[metal]"),
    ("17", "METAL", "Mismatched PJRT plugin PJRT API version (0.47) and framework PJRT API version 0.51).",
     "the plugin speaks PJRT 0.47 and this JAX 0.51", "needle-tui[metal]"),
    ("18", "rocm", "error: unable to find ld.lld in PATH", "ld.lld is missing", "llvm"),
    ("19", "rocm", "Backend 'rocm' is not in the list of known backends: ['cpu', 'tpu'].",
     "no build for AMD GPU (ROCm)", "needle-tui[rocm]"),
    ("22", "cuda", "dnn.cc:456] Loaded runtime CuDNN library: 9.10.1 but source was compiled with: 9.13.1.",
     "cuDNN 9.10.1 was loaded, but this JAX was built with 9.13.1", "unset LD_LIBRARY_PATH"),
    ("23", "cuda", "FAILED_PRECONDITION: DNN library initialization failed. Look at the errors above",
     "memory is taken", "nvidia-smi"),
    ("24", "cuda", "The driver's CUDA version is 12.4 which is older than the PTX compiler version (12.6).",
     "driver is older than this CUDA build of JAX needs: The driver's CUDA version", "update the driver"),
    ("24-cudnn", "cuda", "Unable to load any of {libcudnn_engines_precompiled.so.9}",
     "cuDNN could not be loaded", "needle-tui"),
    ("25", "cuda", "XLA requires ptxas version 11.8 or higher", "needs 11.8 or newer", "PATH"),
    ("32", "cpu", "F1201 03:23:28.29 7389 parse_flags.cc:234] Unknown flag in XLA_FLAGS: --xla_nope=1",
     "does not know, and it stops the process: --xla_nope=1", "take it out of XLA_FLAGS"),
    ("no-jax", "cpu", NO_JAX, "JAX is not installed", "needle-tui[train]"),
    ("no-libtpu", "tpu", "INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file",
     "libtpu is not installed", "needle-tui[tpu]"),
    ("switch", "cpu", "ValueError: invalid truth value 'maybe' for environment 'JAX_ENABLE_X64'",
     "JAX_ENABLE_X64 is 'maybe'", "set JAX_ENABLE_X64 to 1 or 0"),
    ("number", "cpu", 'ValueError: Invalid value "x" for JAX flag jax_num_cpu_devices', "holds 'x'", "unset"),
    ("loader", "cpu", "python: error while loading shared libraries: libpython3.12.so.1.0: cannot open",
     "libpython3.12.so.1.0 is not found", "LD_LIBRARY_PATH"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("platform", "text", "reason", "fix"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_known_failure_has_words_and_a_remedy(platform, text, reason, fix):
    said, remedy = explained(platform, text, system="darwin" if platform == "METAL" else "linux")
    assert reason in said
    assert fix in remedy


@pytest.mark.parametrize(("driver", "extra"), [("525.60", "gpu"), ("580.65.06", "gpu13"), ("", "gpu")])
def test_row_1_the_install_line_fits_the_driver(driver, extra):
    _, fix = explained("cuda", "Backend 'cuda' is not in the list of known backends: ['cpu'].", driver=driver)
    assert fix.endswith(f"'needle-tui[{extra}]'")


def test_row_6_hidden_devices_are_named_as_the_cause():
    text = "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
    reason, _ = explained("cuda", text, environment={"CUDA_VISIBLE_DEVICES": "7"})
    assert "CUDA_VISIBLE_DEVICES is '7'" in reason


def test_nobody_is_told_to_install_metal_on_linux():
    _, fix = explained("METAL", "Backend 'METAL' is not in the list of known backends: ['cpu'].")
    assert "pip" not in fix
    _, on_a_mac = explained(
        "METAL", "Backend 'METAL' is not in the list of known backends: [].", system="darwin"
    )
    assert "needle-tui[metal]" in on_a_mac


def test_an_unknown_platform_is_not_given_an_extra_that_does_not_bring_it():
    _, fix = explained("oneapi", "Backend 'oneapi' is not in the list of known backends: ['cpu'].")
    assert "pip" not in fix


def test_what_no_rule_knows_is_not_explained_away():
    assert explain("cuda", "something quite new", Circumstances()) is None


@pytest.mark.parametrize(
    ("number", "words"),
    [(11, "SIGSEGV (a crash"), (9, "too much memory"), (15, "SIGTERM"), (250, "signal 250")],
)
def test_a_signal_is_named_with_what_it_usually_means(number, words):
    assert words in signal_words(number)


FATAL = "F1201 03:23:28.290155 7389 flags.cc:234] fatal"


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        ("Traceback (most recent call last):\n  File 'x'\n    boom()\nValueError: no\n", "ValueError: no"),
        (f"W0000 a warning\n{FATAL}\nsome echo\n", FATAL),
        ("", ""),
    ],
    ids=["traceback", "fatal-line", "silence"],
)
def test_of_a_processs_last_words_the_error_is_shown_and_never_the_traceback(stderr, line):
    assert telling_line(stderr) == line
