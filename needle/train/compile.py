"""Compiling ahead of time, in threads: other preparation goes on meanwhile, and a stop request is heard."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import jax

from needle.train.ending import StoppedEarly

Compiled = jax.stages.Compiled
_LOOK_EVERY_S = 0.1


class Job(NamedTuple):
    """A function and the arguments, arrays or their shapes, to compile it for; `donate` numbers arguments."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    donate: tuple[int, ...] = ()


class Compilation:
    """Several jobs being compiled, each in a thread of its own, from the moment this is made."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._began_at = time.perf_counter()
        self._workers = ThreadPoolExecutor(max(1, len(jobs)), "compile")
        self._futures = [self._workers.submit(_compile, job) for job in jobs]

    def finish(self, stop_requested: Callable[[], bool]) -> tuple[list[Compiled], float]:
        """The compiled functions, and the seconds since the beginning.

        Raises what the compiler raises, and StoppedEarly as soon as a stop is asked for: a compilation
        cannot be interrupted, so its thread is abandoned.
        """
        pending = set(self._futures)
        while pending:
            done, pending = wait(pending, timeout=_LOOK_EVERY_S, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            if stop_requested():
                raise StoppedEarly("stopped while compiling, before the first step")
        self._workers.shutdown()
        return [future.result() for future in self._futures], time.perf_counter() - self._began_at


def _compile(job: Job) -> Compiled:
    return jax.jit(job.function, donate_argnums=job.donate).lower(*job.arguments).compile()
