import jax
import jax.numpy as jnp
import pytest

from needle.train.estimate import device_limit_bytes, is_too_large, needed_bytes

MIB = 2**20


def test_a_program_needs_its_arguments_and_results_and_a_donated_one_only_once() -> None:
    vector = jax.ShapeDtypeStruct((MIB,), jnp.float32)
    kept = jax.jit(lambda x: x + 1).lower(vector).compile()
    donated = jax.jit(lambda x: x + 1, donate_argnums=0).lower(vector).compile()
    assert needed_bytes(kept) == pytest.approx(8 * MIB, rel=0.1)
    assert needed_bytes(donated) == pytest.approx(4 * MIB, rel=0.1)


def test_a_cpu_tells_no_limit_so_nothing_is_too_large_for_it() -> None:
    assert device_limit_bytes() is None
    assert not is_too_large(10**18, None)


@pytest.mark.parametrize(("needed", "limit", "too_large"), [(9, 8, True), (8, 8, False), (None, 8, False)])
def test_too_large_is_more_than_the_limit(needed: int | None, limit: int, too_large: bool) -> None:
    assert is_too_large(needed, limit) is too_large
