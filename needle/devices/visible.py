"""Which NVIDIA devices JAX sees, and by which number, as CUDA decides it.

A GPU in MIG mode is not a device: its slices are. CUDA shows a process one slice only, and beside a slice no
whole GPU (NVIDIA's MIG user guide, "CUDA Device Enumeration").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VISIBLE = "CUDA_VISIBLE_DEVICES"
JAX_VISIBLE = "JAX_CUDA_VISIBLE_DEVICES"
JAX_FILTERS = (JAX_VISIBLE, "JAX_ROCM_VISIBLE_DEVICES")
"""JAX's own filters, applied to what the system shows it."""


@dataclass(frozen=True)
class Entity:
    """What CUDA can be pointed at: a whole GPU, or one slice of GPU number `card`.

    `name` is as nvidia-smi lists it: `GPU 1`, or `MIG 1:0` for the first slice of GPU 1.
    """

    name: str
    card: int
    uuid: str = ""

    @property
    def is_slice(self) -> bool:
        return self.name.startswith("MIG")


def whole_cards(uuids: Sequence[str]) -> tuple[Entity, ...]:
    """Cards that are not sliced, numbered in the order of the PCI bus."""
    return tuple(Entity(f"GPU {index}", index, uuid) for index, uuid in enumerate(uuids))


def jax_ids(entities: Sequence[Entity], environment: Mapping[str, str]) -> tuple[str, ...]:
    """For each entity its JAX id, `cuda:0`; its own name where JAX does not see it.

    Numbers in the environment are read in PCI bus order, which every child of ours is given.
    """
    seen = _visible(entities, environment.get(VISIBLE))
    kept = environment.get(JAX_VISIBLE, "all").strip()
    if kept not in ("", "all"):
        wanted = [int(part) for part in kept.split(",") if part.strip().isdigit()]
        seen = [seen[place] for place in wanted if place < len(seen)]
    places = {index: place for place, index in enumerate(seen)}
    return tuple(
        f"cuda:{places[index]}" if index in places else entity.name for index, entity in enumerate(entities)
    )


def hides_all(value: str | None) -> bool:
    """Whether a CUDA_VISIBLE_DEVICES with this value leaves no device visible."""
    return value is not None and value.split(",")[0].strip() in ("", "-1", "NoDevFiles")


def _visible(entities: Sequence[Entity], value: str | None) -> list[int]:
    """Positions of what CUDA enumerates, in its order."""
    if value is None:
        found = list(range(len(entities)))
    else:
        found = _listed(entities, value)
    slices = [index for index in found if entities[index].is_slice]
    return slices[:1] if slices else found


def _listed(entities: Sequence[Entity], value: str) -> list[int]:
    """As CUDA reads the list: it ends at the first entry that names no device."""
    found: list[int] = []
    for part in value.split(","):
        meant = [index for index, entity in enumerate(entities) if _names(part.strip(), entity)]
        if not meant or meant[0] in found:
            break
        found.append(meant[0])
    return found


def _names(text: str, entity: Entity) -> bool:
    if text.isdigit():
        return int(text) == entity.card
    return text.startswith(("GPU-", "MIG-")) and entity.uuid.startswith(text)
