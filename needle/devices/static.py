"""What the hints say of each platform in one interpreter, before anything is tried. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from needle.devices.explain import CANNOT_INSTALL, NO_GPU_FIX, Circumstances
from needle.devices.platforms import PLATFORMS, canonical_platform, platform_label
from needle.devices.records import Backend, Device, Status
from needle.devices.requirements import NO_JAX
from needle.devices.sight import Sight
from needle.devices.visible import VISIBLE, hides_all, jax_ids, whole_cards


def static_backends(seen: Sight) -> tuple[Backend, ...]:
    """Every platform this program knows, and those that the environment asks for by name."""
    return tuple(_static_backend(name, seen) for name in dict.fromkeys((*PLATFORMS, *_forced(seen))))


def worth_probing(platform: str, seen: Sight) -> bool:
    """The CPU always; another platform when its hardware or a build for it is here and JAX is."""
    if platform == "cpu":
        return True
    if platform == "cuda" and hides_all(seen.surroundings.environment.get(VISIBLE)):
        return False
    has_jax = "jax" in seen.interpreter.packages
    return has_jax and bool(
        platform not in PLATFORMS or seen.hints.hardware(platform) or seen.build(platform)
    )


def circumstances(seen: Sight) -> Circumstances:
    """What the words of a failure depend on."""
    around, one = seen.surroundings, seen.interpreter
    return Circumstances(
        one.path, seen.hints.nvidia_driver, around.environment, around.system, one.installer, seen.source
    )


def _forced(seen: Sight) -> Iterable[str]:
    """Platforms named by the environment; `gpu` is no platform but a word for several."""
    variables = seen.surroundings.environment
    listed = ",".join(variables.get(name, "") for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME"))
    names = (canonical_platform(part) for part in listed.split(","))
    return [name for name in names if name and name != "gpu"]


def _static_backend(platform: str, seen: Sight) -> Backend:
    """Hardware here, a build of JAX for it here, both or neither."""
    hardware, build = seen.hints.hardware(platform), seen.build(platform)
    devices, hidden = _hinted_devices(platform, seen) if hardware else ((), ())
    visible = seen.surroundings.environment.get(VISIBLE)
    if platform == "cuda" and hardware and hides_all(visible):
        reason = f"{hardware} is here, hidden by {VISIBLE}={visible!r}"
        return Backend(platform, "absent", (), reason, f"unset {VISIBLE}", hidden=hidden)
    status, reason, fix = _verdict(platform, seen, hardware, build)
    return Backend(platform, status, devices, reason, "" if fix == CANNOT_INSTALL else fix, hidden=hidden)


def _verdict(platform: str, seen: Sight, hardware: str, build: str) -> tuple[Status, str, str]:
    """Status, reason, and what would change it."""
    has_jax = "jax" in seen.interpreter.packages
    install = circumstances(seen).install(platform)
    if platform not in PLATFORMS:
        if has_jax:
            return "untried", "asked for by the environment; only a probe can tell what it is", ""
        return "absent", NO_JAX, seen.install("train")
    if hardware and build:
        return "untried", f"{hardware}; {build}", ""
    if platform == "cpu":
        return "absent", NO_JAX, install
    if hardware and not has_jax:
        return "broken", f"{hardware} is here; {NO_JAX}", install
    if hardware:
        return "broken", f"{hardware} is here, but this JAX has no build for it", install
    missing = f"no {platform_label(platform).partition(' (')[0]} is seen"
    if build:
        return "absent", f"{build} is installed, but {missing}", ""
    return "absent", missing, NO_GPU_FIX if platform in ("cuda", "rocm") else "choose another backend"


def _hinted_devices(platform: str, seen: Sight) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
    """Devices as JAX would number them, as far as names were seen, and those it would not see."""
    hints, memory = seen.hints, seen.memory
    if platform == "cpu":
        cpu = Device("cpu:0", "cpu", hints.cpu_model or "cpu", 0, memory.total_bytes, memory.used_bytes)
        return (cpu,), ()
    if platform == "METAL":
        return (
            (
                Device(
                    "METAL:0", "METAL", "Apple GPU", 0, memory.total_bytes, memory.used_bytes, unified=True
                ),
            ),
            (),
        )
    if platform == "cuda":
        return _nvidia_devices(seen)
    names = {"rocm": ("AMD GPU",) * hints.amd_gpus, "tpu": (hints.tpu_kind,) * hints.tpu_chips}
    found = enumerate(names.get(platform, ()))
    return tuple(Device(f"{platform}:{place}", platform, name, place) for place, name in found), ()


def _nvidia_devices(seen: Sight) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
    hints, environment = seen.hints, seen.surroundings.environment
    visible = environment.get(VISIBLE, "")
    if "MIG-" in visible or ("GPU-" in visible and not all(hints.nvidia_uuids)):
        # Which devices those are is known only to the driver.
        return (), ()
    entities = whole_cards(hints.nvidia_uuids)
    ids = jax_ids(entities, environment)
    shown: list[Device] = []
    hidden: list[Device] = []
    for card, name in enumerate(hints.nvidia_names):
        seen_by_jax = ids[card].startswith("cuda:")
        place = int(ids[card].partition(":")[2]) if seen_by_jax else card
        device = Device(ids[card], "cuda", name, place, uuid=hints.nvidia_uuids[card])
        (shown if seen_by_jax else hidden).append(device)
    return tuple(sorted(shown, key=lambda device: device.index)), tuple(hidden)
