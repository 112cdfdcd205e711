"""What a machine shows of its accelerators without any of them being touched.

Only files are read: device nodes, the PCI bus, and what drivers publish under /proc and /sys. The nodes
and ids are those JAX itself looks for (jax/_src/hardware_utils.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NVIDIA_NODES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")
_GOOGLE_VENDOR = "0x1ae0"
_TPU_KINDS = {
    "0x0027": "TPU v3",
    "0x0056": "TPU",
    "0x005e": "TPU v4",
    "0x0062": "TPU v5p",
    "0x0063": "TPU v5e",
    "0x006f": "TPU v6e",
    "0x0076": "TPU7x",
}
_DRIVER_VERSION = re.compile(r"Kernel Module(?:\s+for\s+\S+)?\s+(\d+(?:\.\d+)+)")
_SIMD_COUNT = re.compile(r"^simd_count\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Hints:
    """Traces of hardware. Names are in the order of the PCI bus, as nvidia-smi numbers them.

    `nvidia_uuids` are beside the names, empty where the driver does not publish them.
    """

    nvidia_nodes: tuple[str, ...] = ()
    nvidia_driver: str = ""
    nvidia_names: tuple[str, ...] = ()
    nvidia_uuids: tuple[str, ...] = ()
    amd_gpus: int = 0
    tpu_chips: int = 0
    tpu_kind: str = ""
    apple_gpu: bool = False
    cpu_model: str = ""

    def hardware(self, platform: str) -> str:
        """What was seen of this platform's hardware, in words; empty when nothing was."""
        if platform == "cuda" and self.nvidia_nodes:
            return _counted(self.nvidia_names) or f"NVIDIA device node {self.nvidia_nodes[0]}"
        if platform == "rocm" and self.amd_gpus:
            return _counted(("AMD GPU",) * self.amd_gpus)
        if platform == "tpu" and self.tpu_chips:
            return _counted((self.tpu_kind,) * self.tpu_chips)
        if platform == "METAL" and self.apple_gpu:
            return "Apple GPU"
        return self.cpu_model or "CPU" if platform == "cpu" else ""


def read_hints(root: Path, system: str, architecture: str) -> Hints:
    """Look below `root`, which is `/` but for tests. `system` is as sys.platform says it."""
    if system == "darwin":
        return Hints(apple_gpu=architecture == "arm64")
    chips, kind = _tpu_chips(root)
    cards = _nvidia_cards(root)
    return Hints(
        nvidia_nodes=tuple(node for node in NVIDIA_NODES if (root / node.lstrip("/")).exists()),
        nvidia_driver=_nvidia_driver(root),
        nvidia_names=tuple(name for name, _ in cards),
        nvidia_uuids=tuple(uuid for _, uuid in cards),
        amd_gpus=_amd_gpus(root),
        tpu_chips=chips,
        tpu_kind=kind,
        cpu_model=_cpu_model(root),
    )


def read_text(path: Path) -> str:
    """A small file's text; empty when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _nvidia_driver(root: Path) -> str:
    found = _DRIVER_VERSION.search(read_text(root / "proc/driver/nvidia/version"))
    return found.group(1) if found else read_text(root / "sys/module/nvidia/version").strip()


def _nvidia_cards(root: Path) -> list[tuple[str, str]]:
    """(name, UUID) of each card; a container may be shown question marks instead of the UUID."""
    cards = []
    for card in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        lines = (line.partition(":") for line in read_text(card).splitlines())
        told = {key.strip(): value.strip() for key, _, value in lines}
        if "Model" in told:
            uuid = told.get("GPU UUID", "")
            cards.append((told["Model"], "" if "?" in uuid else uuid))
    return cards


def _amd_gpus(root: Path) -> int:
    """Nodes of the KFD topology with compute units; CPUs are nodes too, with none."""
    if not (root / "dev/kfd").exists():
        return 0
    nodes = (root / "sys/class/kfd/kfd/topology/nodes").glob("*/properties")
    counts = (_SIMD_COUNT.search(read_text(node)) for node in nodes)
    return sum(1 for count in counts if count and int(count.group(1)) > 0)


def _tpu_chips(root: Path) -> tuple[int, str]:
    chips, kind = 0, ""
    for vendor in (root / "sys/bus/pci/devices").glob("*/vendor"):
        if read_text(vendor).strip() != _GOOGLE_VENDOR:
            continue
        device = read_text(vendor.with_name("device")).strip()
        if device in _TPU_KINDS:
            chips, kind = chips + 1, _TPU_KINDS[device]
    return chips, kind


def _cpu_model(root: Path) -> str:
    for line in read_text(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model"):
            return value.strip()
    return ""


def _counted(names: tuple[str, ...]) -> str:
    """`2 x NVIDIA H200`, or the different names one after the other."""
    if not names:
        return ""
    kinds = dict.fromkeys(names)
    return ", ".join(kind if names.count(kind) == 1 else f"{names.count(kind)} x {kind}" for kind in kinds)
