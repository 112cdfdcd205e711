"""What a compiled program needs of its device's memory, as its compiler says."""

from __future__ import annotations

import jax

from needle.train.compile import Compiled


def needed_bytes(compiled: Compiled) -> int | None:
    """Arguments, results and everything in between at once; None where the compiler does not tell.

    What a result takes over from a donated argument counts once.
    """
    told = compiled.memory_analysis()
    if told is None:
        return None
    held = told.argument_size_in_bytes + told.output_size_in_bytes - told.alias_size_in_bytes
    return int(held + told.temp_size_in_bytes + told.generated_code_size_in_bytes)


def device_memory() -> dict[str, int]:
    """What the first device's allocator tells of itself, by JAX's names; a CPU tells nothing."""
    try:
        told: dict[str, int] = jax.local_devices()[0].memory_stats() or {}
    except RuntimeError:
        return {}  # a plugin without the call; its exception is a RuntimeError in every JAX
    return told


def device_limit_bytes() -> int | None:
    """The most the first device's allocator will give; None where it does not tell."""
    return device_memory().get("bytes_limit")


def is_too_large(needed: int | None, limit: int | None) -> bool:
    """Whether both are known and the one exceeds the other."""
    return needed is not None and limit is not None and needed > limit
