import jax.numpy as jnp
import numpy as np
import pytest

from needle.train.optimizer import make_optimizer, warmup_steps


@pytest.mark.parametrize(("total", "warmup"), [(1, 0), (2, 1), (15, 1), (40, 2), (2000, 100)])
def test_warm_up_is_a_twentieth_but_leaves_a_step_to_decay(total: int, warmup: int) -> None:
    assert warmup_steps(total) == warmup


def test_the_rate_starts_at_zero_peaks_after_warm_up_and_falls() -> None:
    schedule = make_optimizer(3e-3, 40).schedule
    rates = [float(schedule(step)) for step in range(40)]
    assert rates[0] == 0
    assert rates[2] == pytest.approx(3e-3)
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] < 2e-5


def test_a_single_step_trains_at_the_peak() -> None:
    assert float(make_optimizer(1e-3, 1).schedule(0)) == pytest.approx(1e-3)


def test_a_large_gradient_moves_no_further_than_its_clipped_self() -> None:
    transform = make_optimizer(1e-3, 1).transform
    params = {"w": jnp.zeros(4)}
    clipped, _ = transform.update({"w": jnp.full(4, 0.5)}, transform.init(params), params)
    large, _ = transform.update({"w": jnp.full(4, 5e8)}, transform.init(params), params)
    np.testing.assert_allclose(large["w"], clipped["w"], rtol=1e-6)
