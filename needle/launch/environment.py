"""The environment of a run: which variables are set, taken out or kept, each with its reason. Pure.

Set before the child's interpreter starts, because JAX reads most of them when it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import platformdirs

from needle.devices.flags import FLAGS, merged_flags, overruled_flags
from needle.devices.platforms import canonical_platform
from needle.devices.variables import (
    FRACTION,
    OLD_FRACTION,
    OVERRULED,
    PREALLOCATE,
    fraction_name,
    has_pip_cuda,
    set_aside,
    split_library_path,
)
from needle.devices.visible import JAX_FILTERS
from needle.errors import InputError
from needle.launch.memory_share import MemoryShare
from needle.runs.record import Variable

AUTO = "auto"
_SHOWN = ("JAX_", "XLA_", "PJRT_", "TF_CPP_")
_SHOWN_BY_PLATFORM = {
    "cuda": ("CUDA_", "NVIDIA_", "NCCL_", "CUDNN_", "TF_GPU_"),
    "rocm": ("HIP_", "ROCR_", "HSA_", "NCCL_", "RCCL_", "TF_GPU_"),
    "tpu": ("TPU_", "LIBTPU_"),
}
_VISIBLE = {"cuda": "CUDA_VISIBLE_DEVICES", "rocm": "HIP_VISIBLE_DEVICES"}
_GPU_PLATFORMS = ("gpu", "cuda", "rocm")
_CACHED = ("cuda", "rocm", "tpu")
_KEPT_WORDS = {
    "XLA_FLAGS": "yours, kept; the probes started with it",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "yours, kept; with false, memory is taken as it is needed and not given "
    "back before the end",
    "XLA_PYTHON_CLIENT_ALLOCATOR": "yours, kept; platform gives memory back at once and is slow",
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "yours, kept; it can hide errors and give wrong results",
    "JAX_DEBUG_NANS": "yours, kept; every step runs a second time, slowly, when a NaN appears",
    "JAX_ENABLE_X64": "yours, kept; float64 where nothing else is said",
}


def requested_backend(setting: str, inherited: Mapping[str, str]) -> tuple[str, str]:
    """(platform or `auto`, who asked): the setting first, then JAX_PLATFORMS, then JAX_PLATFORM_NAME.

    Of a list the first platform is the one JAX computes on. Where both variables are set, the older one
    picks among those of the newer, as in JAX.
    """
    asked = next((part for part in setting.split(",") if part.strip()), AUTO)
    if asked.strip().lower() != AUTO:
        return canonical_platform(asked), "the backend setting"
    listed = [
        canonical_platform(name) for name in inherited.get("JAX_PLATFORMS", "").split(",") if name.strip()
    ]
    preferred = canonical_platform(inherited.get("JAX_PLATFORM_NAME", ""))
    meant = _GPU_PLATFORMS if preferred == "gpu" else (preferred,)
    picked = next((name for name in listed if name in meant), preferred if not listed else "")
    if picked:
        return picked, "JAX_PLATFORM_NAME in your environment"
    if listed:
        return listed[0], "JAX_PLATFORMS in your environment"
    return AUTO, ""


def plan_environment(
    platform: str,
    jax_version: str,
    inherited: Mapping[str, str],
    os_name: str = sys.platform,
    device_ids: Sequence[str] = (),
    *,
    packages: Mapping[str, str] | None = None,
    memory: MemoryShare | None = None,
    xla_flags: str = "",
    cache_directory: str = "",
) -> tuple[Variable, ...]:
    """What changes between the person's environment and the run's, and what of theirs stays and matters.

    `device_ids` are the inventory's (`cuda:1`) or UUIDs; none means all. `packages` are the interpreter's,
    None when unknown; `xla_flags` are this run's own. Raises InputError for what cannot be expressed.
    """
    if platform in ("", "gpu"):
        raise InputError(
            f"{platform or 'an empty name'} is not one platform", remedy="say cuda or rocm", field="backend"
        )
    planned = [
        _platforms(platform, inherited),
        *_devices(platform, inherited, device_ids),
        *_memory(platform, jax_version, inherited, memory),
        *_xla_flags(inherited, xla_flags),
        *_library_path(platform, inherited, packages),
        *_metal(platform, inherited, os_name),
        *_compilation_cache(platform, jax_version, inherited, cache_directory),
        *_output(inherited),
    ]
    named = {variable.name for variable in planned}
    taken_out = [
        Variable(name, None, f"yours was {inherited[name]!r}; {reason}" if inherited[name] else reason)
        for name in sorted(inherited)
        if name not in named and (reason := set_aside(name, inherited))
    ]
    named |= {variable.name for variable in taken_out}
    return (*planned, *taken_out, *_kept(platform, inherited, named))


def _platforms(platform: str, inherited: Mapping[str, str]) -> Variable:
    """The chosen platform first; the CPU with it, so that arrays can also be kept in host memory."""
    value = platform if platform == "cpu" else f"{platform},cpu"
    yours = inherited.get("JAX_PLATFORMS", "")
    reason = (
        "the CPU only: no accelerator is started or its memory taken"
        if platform == "cpu"
        else f"{platform} or nothing: the run stops when it does not start; the CPU for data in host memory"
    )
    if yours and yours != value:
        reason += f"; yours was {yours!r}"
    return Variable("JAX_PLATFORMS", value, reason, kept=yours == value)


def _devices(platform: str, inherited: Mapping[str, str], device_ids: Sequence[str]) -> list[Variable]:
    planned = []
    if platform == "cuda":
        order = _own_or("CUDA_DEVICE_ORDER", "PCI_BUS_ID", "number GPUs as nvidia-smi does", inherited)
        if device_ids and order.kept and order.value != "PCI_BUS_ID":
            order = Variable(
                order.name, "PCI_BUS_ID", f"devices were chosen by it; yours was {order.value!r}"
            )
        planned.append(order)
    if not device_ids or platform in ("cpu", "METAL"):
        return planned
    if platform not in _VISIBLE:
        raise InputError(
            f"devices of {platform} cannot be chosen one by one", remedy="use all of them", field="devices"
        )
    name = _VISIBLE[platform]
    yours = [part.strip() for part in inherited.get(name, "").split(",") if part.strip()]
    chosen = [_system_number(device_id, platform, yours) for device_id in device_ids]
    reason = f"only {', '.join(device_ids)}" + (f"; yours was {inherited[name]!r}" if yours else "")
    filters = [Variable(other, None, f"{name} says it") for other in JAX_FILTERS if inherited.get(other)]
    return [*planned, Variable(name, ",".join(chosen), reason), *filters]


def _system_number(device_id: str, platform: str, visible: list[str]) -> str:
    """`cuda:1` is the second of the devices visible now, whatever numbers those have; a UUID is itself."""
    if device_id.startswith(("GPU-", "MIG-")):
        return device_id
    kind, _, number = device_id.partition(":")
    if kind != platform or not number.isdigit() or (visible and int(number) >= len(visible)):
        raise InputError(
            f"{device_id} is not a {platform} device here", remedy="see: needle devices", field="devices"
        )
    return visible[int(number)] if visible else number


def _memory(
    platform: str, jax_version: str, inherited: Mapping[str, str], share: MemoryShare | None
) -> list[Variable]:
    """JAX takes 75 % of a GPU by default, whoever else uses it; a person's own choice is kept (row 37)."""
    if platform not in ("cuda", "rocm"):
        return []
    own = next((name for name in (FRACTION, OLD_FRACTION) if inherited.get(name)), None)
    if own is not None:
        reason = "yours, kept: the share of the device's memory that JAX takes at the start"
        if _is_all(inherited[own]):
            reason += "; all of it leaves nothing for CUDA's own libraries, so the start may fail"
        return [Variable(own, inherited[own], reason, kept=True)]
    if share is None or inherited.get(PREALLOCATE, "").lower() in ("false", "0"):
        return []
    return [Variable(fraction_name(jax_version), f"{share.fraction:g}", share.reason)]


def _xla_flags(inherited: Mapping[str, str], extra: str) -> list[Variable]:
    """The person's flags with this run's; of the same flag twice this run's counts."""
    own = inherited.get(FLAGS, "")
    if not extra.strip():
        return []
    merged = merged_flags(own, extra)
    overruled = overruled_flags(own, extra)
    reason = "this run's flags" + (", beside those of your environment" if own.strip() else "")
    if overruled:
        reason += f"; this run's instead of your {' '.join(overruled)}"
    return [Variable(FLAGS, merged, reason)]


def _is_all(text: str) -> bool:
    try:
        return float(text) >= 1
    except ValueError:
        return False


def _library_path(
    platform: str, inherited: Mapping[str, str], packages: Mapping[str, str] | None
) -> list[Variable]:
    """Row 22: a cuDNN or CUDA found there comes before the one that JAX was built with."""
    value = inherited.get("LD_LIBRARY_PATH", "")
    if platform != "cuda" or not value:
        return []
    assumed = {"nvidia-cudnn": ""} if packages is None else packages
    kept, removed = split_library_path(value, assumed)
    if not has_pip_cuda(assumed):
        words = "yours, kept: this environment has no CUDA libraries of its own"
        return [Variable("LD_LIBRARY_PATH", value, words, kept=True)]
    if not removed:
        return [Variable("LD_LIBRARY_PATH", value, "yours, kept: it names no CUDA toolkit", kept=True)]
    reason = f"{':'.join(removed)} would hide the CUDA libraries that came with JAX"
    return [Variable("LD_LIBRARY_PATH", kept or None, reason)]


def _metal(platform: str, inherited: Mapping[str, str], os_name: str) -> list[Variable]:
    if platform != "METAL" or os_name != "darwin":
        return []
    reason = "jax-metal speaks an older PJRT than JAX"
    return [_own_or("ENABLE_PJRT_COMPATIBILITY", "1", reason, inherited)]


def _compilation_cache(
    platform: str, jax_version: str, inherited: Mapping[str, str], directory: str
) -> list[Variable]:
    """Compiled steps are kept where reloading them works: not on a CPU (jax#38445), not on Metal."""
    name = "JAX_COMPILATION_CACHE_DIR"
    if inherited.get(name):
        reason = "yours, kept"
        if platform == "cpu":
            reason += "; on a CPU reloading is known to miss, and to crash after JAX was changed in place"
        return [Variable(name, inherited[name], reason, kept=True)]
    if platform not in _CACHED:
        return []
    base = directory or platformdirs.user_cache_dir("needle", appauthor=False)
    where = f"{base}/compiled/{platform}-jax{jax_version or '-unknown'}"
    return [Variable(name, where, "the next run of the same shapes starts without compiling; safe to delete")]


def _output(inherited: Mapping[str, str]) -> list[Variable]:
    """What makes the log whole, prompt and readable: it is a file, not a terminal."""
    planned = [
        _own_or("PYTHONUNBUFFERED", "1", "the log shows each line when it is written", inherited),
        _own_or("PYTHONFAULTHANDLER", "1", "a crash inside a library leaves a trace in the log", inherited),
        _own_or("PYTHONUTF8", "1", "text is UTF-8 whatever the locale", inherited),
        _own_or("NO_COLOR", "1", "no colour codes in the log", inherited),
        _own_or("TF_CPP_MIN_LOG_LEVEL", "1", "XLA's informational lines stay out of the log", inherited),
    ]
    forced = [name for name in ("FORCE_COLOR", "CLICOLOR_FORCE") if name in inherited]
    return [*planned, *(Variable(name, None, "no colour codes in the log") for name in forced)]


def _own_or(name: str, value: str, reason: str, inherited: Mapping[str, str]) -> Variable:
    """The person's own value where there is one, ours otherwise."""
    own = inherited.get(name)
    return Variable(name, own, f"yours, kept: {reason}", kept=True) if own else Variable(name, value, reason)


def _kept(platform: str, inherited: Mapping[str, str], named: set[str]) -> list[Variable]:
    """The person's other variables that steer JAX on this platform: unchanged, but shown."""
    starts = _SHOWN + _SHOWN_BY_PLATFORM.get(platform, ())
    return [
        Variable(name, inherited[name], _KEPT_WORDS.get(name, "yours, kept"), kept=True)
        for name in sorted(inherited)
        if name.startswith(starts) and name not in named and name not in OVERRULED
    ]
