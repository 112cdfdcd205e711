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


def device_limit_bytes() -> int | None:
    """The most the first device's allocator will give; None where it does not tell, as on a CPU."""
    limit = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    return None if limit is None else int(limit)


def is_too_large(needed: int | None, limit: int | None) -> bool:
    """Whether both are known and the one exceeds the other."""
    return needed is not None and limit is not None and needed > limit
