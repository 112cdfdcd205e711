"""The first act of a trainer: is this the backend that was planned?

JAX falls back to the CPU without a word (`JAX_PLATFORMS=cuda,cpu` where there is no GPU), so what was
planned is compared with what came, before anything else is done.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax

from needle.errors import RunError

_GPU_VENDORS = ("cuda", "rocm")


@dataclass(frozen=True)
class BackendFacts:
    """The backend this process really has. `device` is the kind of the first device."""

    platform: str
    device: str
    device_count: int
    jax_version: str


def configure_jax() -> None:
    """Settings that decide numbers, set before the first computation.

    `jax_threefry_partitionable` is off by default in JAX 0.4 and on later; on, both draw the same bits.
    """
    jax.config.update("jax_threefry_partitionable", True)


def check_backend(planned: str) -> BackendFacts:
    """What the backend is. Raises RunError when it did not start or is not the planned one."""
    facts = start_backend(planned)
    if not same_platform(planned, facts.platform):
        raise RunError(
            f"planned for {planned}, but JAX came up on {facts.platform} ({facts.device}); "
            "nothing was computed",
            remedy=f"`needle devices` says why {planned} does not start; or use --backend {facts.platform}",
        )
    return facts


def start_backend(planned: str) -> BackendFacts:
    """Start JAX, on whatever it comes up; `planned` is only for words. Raises RunError when none does."""
    try:
        devices = jax.local_devices()
    except (RuntimeError, AssertionError) as error:
        raise RunError(
            f"the planned backend {planned} did not start: {_cause(planned, error)}",
            remedy="`needle devices` says what works on this machine; --backend cpu always does",
        ) from error
    platform = platform_name(jax.default_backend(), devices[0].client.platform_version)
    return BackendFacts(platform, devices[0].device_kind, len(devices), jax.__version__)


def platform_name(default_backend: str, platform_version: str) -> str:
    """JAX's name of a backend as a plan says it: `gpu` becomes `cuda` or `rocm`, by the client's version."""
    if default_backend != "gpu":
        return default_backend
    version = platform_version.lower()
    return next((vendor for vendor in _GPU_VENDORS if vendor in version), "gpu")


def same_platform(planned: str, actual: str) -> bool:
    """Whether the planned platform is the one that came; `gpu` stands for either vendor."""
    if "gpu" in (planned, actual):
        return {planned, actual} <= {"gpu", *_GPU_VENDORS}
    return planned.lower() == actual.lower()


def _cause(planned: str, error: Exception) -> str:
    """Why, in JAX's words; it raises a bare AssertionError where a GPU has no device node."""
    text = str(error).strip()
    if not text:
        return "JAX found no device for it (for cuda: there is no NVIDIA device node here)"
    first = text.splitlines()[0]
    return first.removeprefix(f"Unable to initialize backend '{planned}': ").split(" (set JAX_PLATFORMS")[0]
