"""Environment variables that steer JAX behind a person's back; shared by the probe and by the plan."""

from __future__ import annotations

from collections.abc import Mapping

from needle.devices.platforms import version_tuple

OVERRULED: dict[str, str] = {
    "JAX_PLATFORM_NAME": "deprecated: it only picks the default while every backend still starts "
    "and takes its memory",
    "JAX_XLA_BACKEND": "an old name that JAX still obeys over JAX_PLATFORMS",
    "JAX_BACKEND_TARGET": "an old name of a remote backend",
    "JAX_DEFAULT_DEVICE": "it would move the computation off the backend chosen here",
}
"""Variables a child never inherits, and why."""

FRACTION = "XLA_CLIENT_MEM_FRACTION"
OLD_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
_NEW_FRACTION_JAX = (0, 4, 38)

_CUDA_WORDS = ("cuda", "cudnn", "cublas", "nccl", "nvjitlink", "tensorrt", "hpc_sdk")
_DRIVER_DIRECTORIES = ("/usr/local/nvidia/", "/usr/lib/wsl/")


def set_aside(name: str, inherited: Mapping[str, str]) -> str:
    """Why a child must not inherit this variable; empty when it may."""
    if name in OVERRULED:
        return OVERRULED[name]
    if name.startswith("JAX_") and not inherited[name].strip():
        return "set but empty: JAX stops at an empty value"
    if name == OLD_FRACTION and inherited.get(FRACTION):
        return f"JAX refuses to start when {FRACTION} is set too"
    return ""


def fraction_name(jax_version: str) -> str:
    """The variable that this JAX reads; older ones than were looked at get the name that all of them read."""
    known = version_tuple(jax_version)
    return FRACTION if not known or known >= _NEW_FRACTION_JAX else OLD_FRACTION


def has_pip_cuda(packages: Mapping[str, str]) -> bool:
    """Whether this interpreter brings its own CUDA libraries, as `jax[cuda12]` does."""
    return any(name.startswith(("nvidia-cudnn", "nvidia-cuda-runtime")) for name in packages)


def split_library_path(value: str, packages: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """LD_LIBRARY_PATH without the CUDA toolkits that would hide the wheels' own libraries.

    Returns what stays and the entries taken out. Directories of the driver stay: on GKE and WSL libcuda is
    found only there. Without CUDA wheels everything stays: the libraries there are the only ones.
    """
    entries = [entry for entry in value.split(":") if entry]
    if not has_pip_cuda(packages):
        return ":".join(entries), ()
    removed = tuple(entry for entry in entries if _is_toolkit(entry))
    return ":".join(entry for entry in entries if entry not in removed), removed


def _is_toolkit(entry: str) -> bool:
    folded = entry.lower()
    if any(folded.startswith(directory) for directory in _DRIVER_DIRECTORIES):
        return False
    return any(word in folded for word in _CUDA_WORDS)
