"""What a failed start of JAX means, in words, with what to do about it.

One table, first match wins. Each rule names its row in the field notes or the report it comes from.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from needle.devices.platforms import METAL_JAX, extra_for, install_command, platform_label
from needle.devices.probe import LOADED, NO_JAX, NO_NVIDIA_NODE

BOTH_WHEELS_FIX = "uninstall one of the two: an environment serves either CUDA or ROCm"
NO_GPU_FIX = (
    "use the CPU here; on a cluster start from a node with a GPU, in a container pass the GPUs in "
    "(docker run --gpus all)"
)
CANNOT_INSTALL = "the platform's own documentation says which package brings it to JAX"


@dataclass(frozen=True)
class Circumstances:
    """What the words depend on: the interpreter asked, the driver seen, the probe's environment."""

    python: str = "python"
    driver: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    system: str = sys.platform
    installer: str = "pip"
    source: str = ""

    def install(self, platform: str) -> str:
        """The line that installs a JAX with this platform."""
        if platform == "METAL" and self.system != "darwin":
            return "Metal is on Apple computers only; choose another backend"
        extra = extra_for(platform, self.driver)
        if extra == "train" and platform != "cpu":
            return CANNOT_INSTALL
        return install_command(self.python, extra, installer=self.installer, source=self.source)


@dataclass(frozen=True)
class Explanation:
    """`may_pass`: asked again the answer may be another, though nothing that is remembered by changed."""

    reason: str
    fix: str
    may_pass: bool = False


@dataclass(frozen=True)
class _Rule:
    """`reason` and `fix` may use the pattern's groups {0}, {1} and {install}, {label}, {visible}, {line} and
    {library}, where a library was loaded from."""

    pattern: str
    reason: str
    fix: str
    platform: str = ""
    may_pass: bool = False


_RULES = (
    _Rule(re.escape(NO_JAX), NO_JAX, "{install}"),  # no extra installed
    _Rule(  # row 8; jax xla_bridge.backends: cuda without a device node is passed over
        re.escape(NO_NVIDIA_NODE),
        NO_NVIDIA_NODE,
        NO_GPU_FIX,
    ),
    _Rule(  # row 32
        r"Unknown flags? in XLA_FLAGS: ?([^\n]+)",
        "XLA_FLAGS holds a flag this XLA does not know, and it stops the process: {0}",
        "take it out of XLA_FLAGS",
    ),
    _Rule(  # section 2: empty and unknown words for switches
        r"invalid truth value '([^']*)' for environment '(\w+)'",
        "{1} is {0!r}, which JAX does not take for yes or no",
        "set {1} to 1 or 0, or unset it",
    ),
    _Rule(
        r'Invalid value "([^"]*)" for JAX flag (\w+)',
        "the variable of {1} holds {0!r}, which JAX does not accept",
        "correct it or unset it",
    ),
    _Rule(  # jax#22070
        r"TPU is already in use by process with pid (\d+)",
        "the TPU is in use by process {0}; a TPU serves one process at a time",
        "wait for it or stop it: ps -fp {0}",
        may_pass=True,
    ),
    _Rule(  # row 11
        r"libtpu.*(already in use|lockfile)",
        "libtpu says the TPU is in use; the lock file may be left over from a process that is gone",
        "see who holds it: lsof /dev/accel* /dev/vfio/*; ls -l /tmp/libtpu_lockfile",
        may_pass=True,
    ),
    _Rule(r"Failed to open libtpu\.so", "libtpu is not installed in this interpreter", "{install}", "tpu"),
    _Rule(  # row 17
        r"Mismatched PJRT plugin PJRT API version \(([\d.]+)\) and framework PJRT API version \(?([\d.]+?)\)",
        "the plugin speaks PJRT {0} and this JAX {1}: their versions do not belong together",
        "{install}",
    ),
    _Rule(  # row 14
        r"default_memory_space is not supported",
        f"this JAX is too new for jax-metal, which needs jax {METAL_JAX}",
        "in an environment of its own: {install}",
    ),
    _Rule(  # row 22
        r"Loaded runtime CuDNN library: (\S+) but source was compiled with: (\d+(?:\.\d+)*)",
        "cuDNN {0} was loaded{library}, but this JAX was built with {1}",
        "unset LD_LIBRARY_PATH so that the wheel's own cuDNN is found, or: {install}",
    ),
    _Rule(  # row 24
        r"older than the PTX compiler|CUDA_ERROR_UNSUPPORTED_PTX_VERSION|CUDA driver version is insufficient",
        "the NVIDIA driver is older than this CUDA build of JAX needs: {line}",
        "update the driver, or install an older CUDA build: {install}",
    ),
    _Rule(  # row 25
        r"XLA requires ptxas version ([\d.]+)",
        "an old ptxas from the system's CUDA comes first on PATH; XLA needs {0} or newer",
        "take the system's CUDA out of PATH",
        may_pass=True,
    ),
    _Rule(
        r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|Driver/library version mismatch",
        "the NVIDIA driver's kernel module and its libraries are of different versions",
        "reboot, or reload the nvidia module: the driver was updated while it ran",
    ),
    _Rule(  # row 24, jax#23833
        r"Unable to load any of \{?libcudnn|Unable to load cuDNN|cuDNN is not detected",
        "cuDNN could not be loaded: {line}",
        "{install}",
    ),
    _Rule(  # row 6
        r"no supported devices found for platform CUDA|CUDA_ERROR_NO_DEVICE|No visible GPU devices",
        "CUDA finds no GPU it may use{visible}",
        "check CUDA_VISIBLE_DEVICES and nvidia-smi; a full GPU is not usable either",
        may_pass=True,
    ),
    _Rule(  # rows 23 and 37
        r"DNN library initialization failed|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED",
        "the device's memory is taken, by other processes or by a preallocation: {line}",
        "see who uses it: nvidia-smi; then free it or choose another device",
        may_pass=True,
    ),
    _Rule(  # row 18
        r"unable to find ld\.lld",
        "ROCm lists its devices but cannot compile for them: its linker ld.lld is missing",
        "install ROCm's llvm package and put its bin directory on PATH",
        may_pass=True,
    ),
    _Rule(  # rows 1, 4, 19
        r"is not in the list of known backends|no attribute 'GpuAllocatorConfig'",
        "this JAX has no build for {label}",
        "{install}",
    ),
    _Rule(
        r"error while loading shared libraries: ([^:\s]+)",
        "the interpreter cannot start: {0} is not found",
        "it may lie in a directory that a module or LD_LIBRARY_PATH named when this Python was installed",
    ),
)

_SIGNALS = {
    signal.SIGSEGV: "a crash inside a library",
    signal.SIGABRT: "a library gave up",
    signal.SIGILL: "an instruction this CPU does not have: the wheel was built for another",
    signal.SIGBUS: "a broken mapping of a file, often a full or changed disk",
    signal.SIGKILL: "killed from outside, most often for using too much memory",
}


def explain(platform: str, text: str, circumstances: Circumstances) -> Explanation | None:
    """What JAX or a library said, in words with a remedy; None when no rule knows it."""
    for rule in _RULES:
        found = re.search(rule.pattern, text)
        if found is None or rule.platform not in ("", platform):
            continue
        visible = circumstances.environment.get("CUDA_VISIBLE_DEVICES")
        words = {
            "install": circumstances.install(platform),
            "label": platform_label(platform),
            "visible": "" if visible is None else f": CUDA_VISIBLE_DEVICES is {visible!r}",
            "line": _line_at(text, found.start()),
            "library": _loaded_from(text),
        }
        return Explanation(
            rule.reason.format(*found.groups(), **words),
            rule.fix.format(*found.groups(), **words),
            rule.may_pass,
        )
    return None


def signal_words(number: int) -> str:
    """`SIGSEGV (a crash inside a library)`."""
    try:
        known = signal.Signals(number)
    except ValueError:
        return f"signal {number}"
    return f"{known.name} ({_SIGNALS[known]})" if known in _SIGNALS else known.name


def telling_line(stderr: str) -> str:
    """The line of a failed process's stderr that says most: the error, never its traceback."""
    lines = [
        line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith((" ", "\t"))
    ]
    lines = [
        line
        for line in lines
        if not line.startswith(("Traceback", "During handling", "***", "Current thread"))
    ]
    fatal = [line for line in lines if re.match(r"F\d{4} |F\d{4,}\s", line)]
    return (fatal or lines or [""])[-1][:400]


def _loaded_from(text: str) -> str:
    """` from /usr/lib/libcudnn.so.9`, by the line that the probe leaves when it fails."""
    found = re.search(rf"^{re.escape(LOADED)}(\S*cudnn\S*)", text, re.MULTILINE)
    return f" from {found[1]}" if found else ""


def _line_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    return text[start:].partition("\n")[0].strip()[:200]
