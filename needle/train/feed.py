"""How batches reach the step: from the data set on the device, or from host memory two batches ahead.

A step reads one batch of the `batches` it is given, so one compiled step serves both: on the device
`batches` is a whole epoch, from the host it is one batch. What a feed gives depends on the step alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

import jax
import numpy as np

from needle.train.batches import stacked
from needle.train.step import Batch

AHEAD = 2


class Fetched(NamedTuple):
    """A step's batch, at a position of `batches`. The waits are for the host, then for the device."""

    batches: Batch
    position: np.int32
    data_ms: float
    transfer_ms: float


class Feed(Protocol):
    """Gives the batch of a step numbered from 0; steps are asked for in order, from any beginning."""

    def __call__(self, step: int) -> Fetched: ...

    def close(self) -> None:
        """Stop what prepares batches in the background."""


MakeBatch = Callable[[int], Batch]


class _Ready(NamedTuple):
    batches: Batch
    packed_at: float
    ready_at: float


class HostFeed:
    """Batches stay in host memory as numpy; a thread packs and copies the next two while the device works."""

    def __init__(self, make_batch: MakeBatch, total_steps: int) -> None:
        self._make_batch = make_batch
        self._total_steps = total_steps
        self._worker = ThreadPoolExecutor(1, "feed")
        self._coming: deque[tuple[int, Future[_Ready]]] = deque()

    def __call__(self, step: int) -> Fetched:
        began_at = time.perf_counter()
        following = self._coming[-1][0] + 1 if self._coming else step
        for ahead in range(following, min(step + AHEAD + 1, self._total_steps)):
            self._coming.append((ahead, self._worker.submit(_put, self._make_batch, ahead)))
        expected, future = self._coming.popleft()
        assert expected == step, "steps are asked for in order"
        return _fetched(future.result(), np.int32(0), began_at)

    def close(self) -> None:
        self._worker.shutdown(cancel_futures=True)


class DeviceFeed:
    """A whole epoch of batches lives on the device; the step gathers its own, and nothing crosses in between.

    Each epoch has its own order, so its batches are packed on the host while the epoch before runs, and
    cross once, when the epoch before has let go of its memory.
    """

    def __init__(self, make_batch: MakeBatch, total_steps: int, steps_per_epoch: int) -> None:
        self._make_batch = make_batch
        self._total_steps = total_steps
        self._steps_per_epoch = steps_per_epoch
        self._worker = ThreadPoolExecutor(1, "feed")
        self._packed: tuple[int, Future[Batch]] | None = None
        self._epoch = -1
        self._batches: Batch | None = None

    def __call__(self, step: int) -> Fetched:
        epoch, index = divmod(step, self._steps_per_epoch)
        if self._batches is not None and epoch == self._epoch:
            return Fetched(self._batches, np.int32(index), 0.0, 0.0)
        self._batches = None
        began_at = time.perf_counter()
        packed = self._packed_epoch(epoch)
        packed_at = time.perf_counter()
        self._batches, self._epoch = jax.block_until_ready(jax.device_put(packed)), epoch
        ready = _Ready(self._batches, packed_at, time.perf_counter())
        self._prepare(epoch + 1)
        return _fetched(ready, np.int32(index), began_at)

    def close(self) -> None:
        self._worker.shutdown(cancel_futures=True)

    def _packed_epoch(self, epoch: int) -> Batch:
        if self._packed is None or self._packed[0] != epoch:
            self._prepare(epoch)
        assert self._packed is not None
        return self._packed[1].result()

    def _prepare(self, epoch: int) -> None:
        first = epoch * self._steps_per_epoch
        if first < self._total_steps:
            steps = range(first, first + self._steps_per_epoch)
            self._packed = epoch, self._worker.submit(stack_batches, self._make_batch, steps)


def stack_batches(make_batch: MakeBatch, steps: Sequence[int]) -> Batch:
    """The batches of these steps as one data set, in host memory."""
    return stacked(map(make_batch, steps))


def _put(make_batch: MakeBatch, step: int) -> _Ready:
    packed = stack_batches(make_batch, (step,))
    packed_at = time.perf_counter()
    batches = jax.block_until_ready(jax.device_put(packed))
    return _Ready(batches, packed_at, time.perf_counter())


def _fetched(ready: _Ready, index: np.int32, began_at: float) -> Fetched:
    """What of the preparation the loop had to wait for; preparation that was over cost it nothing."""
    data_s = max(0.0, ready.packed_at - began_at)
    transfer_s = max(0.0, ready.ready_at - max(began_at, ready.packed_at))
    return Fetched(ready.batches, index, 1e3 * data_s, 1e3 * transfer_s)
