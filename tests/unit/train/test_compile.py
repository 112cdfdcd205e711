import threading

import jax
import jax.numpy as jnp
import pytest

from needle.train.compile import Compilation, Job
from needle.train.ending import StoppedEarly

VECTOR = jax.ShapeDtypeStruct((3,), jnp.float32)


def test_every_job_is_compiled_for_its_shapes_and_in_its_order() -> None:
    jobs = [Job(lambda x: x + 1, [VECTOR]), Job(lambda x: x * 2, [VECTOR])]
    (plus, twice), seconds = Compilation(jobs).finish(lambda: False)
    assert plus(jnp.ones(3)).tolist() == [2, 2, 2]
    assert twice(jnp.full(3, 4.0)).tolist() == [8, 8, 8]
    assert seconds > 0


def test_a_donated_argument_is_consumed() -> None:
    ((plus,), _) = Compilation([Job(lambda x: x + 1, [VECTOR], donate=(0,))]).finish(lambda: False)
    given = jnp.ones(3)
    plus(given)
    assert given.is_deleted()


def test_a_function_that_does_not_trace_is_told_as_its_own_exception() -> None:
    with pytest.raises(TypeError, match="incompatible shapes"):
        Compilation([Job(lambda x: x + jnp.ones(2), [VECTOR])]).finish(lambda: False)


def test_a_stop_request_is_heard_before_the_compiler_is_done() -> None:
    gate = threading.Event()

    def slow(x: jax.Array) -> jax.Array:
        gate.wait(30)
        return x

    compilation = Compilation([Job(slow, [VECTOR])])
    with pytest.raises(StoppedEarly, match="while compiling"):
        compilation.finish(lambda: True)
    gate.set()
