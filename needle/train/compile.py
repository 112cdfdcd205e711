"""Compiling ahead of time, in threads, so that a stop request is heard while the compiler works."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import jax

from needle.train.ending import StoppedEarly

Compiled = Callable[..., Any]
_LOOK_EVERY_S = 0.1


class Job(NamedTuple):
    """A function and the arguments, arrays or their shapes, to compile it for; `donate` numbers arguments."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    donate: tuple[int, ...] = ()


def compile_all(jobs: Sequence[Job], stop_requested: Callable[[], bool]) -> tuple[list[Compiled], float]:
    """The compiled functions and the seconds it took. Raises StoppedEarly, and the compiler's exceptions."""
    began_at = time.perf_counter()
    workers = ThreadPoolExecutor(len(jobs), "compile")
    waiting = futures = [workers.submit(_compile, job) for job in jobs]
    while waiting:
        done, pending = wait(waiting, timeout=_LOOK_EVERY_S, return_when=FIRST_EXCEPTION)
        if stop_requested():
            raise StoppedEarly("stopped while compiling, before the first step")
        for finished in done:
            finished.result()
        waiting = list(pending)
    return [future.result() for future in futures], time.perf_counter() - began_at


def _compile(job: Job) -> Compiled:
    return jax.jit(job.function, donate_argnums=job.donate).lower(*job.arguments).compile()
