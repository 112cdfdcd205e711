import threading
from collections.abc import Callable

import jax
import numpy as np
import pytest

from needle.train.feed import AHEAD, DeviceFeed, Feed, HostFeed
from needle.train.step import Batch

TOTAL, PER_EPOCH = 7, 3


class Source:
    """Batches whose tokens say their step; remembers which were made, and when."""

    def __init__(self) -> None:
        self.made: list[int] = []
        self.lock = threading.Lock()

    def __call__(self, step: int) -> Batch:
        with self.lock:
            self.made.append(step)
        rows = np.full((2, 4), step, np.int32)
        return Batch(rows, rows + 100, np.array([step], np.int32))


MAKERS: dict[str, Callable[[Source], Feed]] = {
    "host": lambda source: HostFeed(source, TOTAL),
    "device": lambda source: DeviceFeed(source, 6, PER_EPOCH),
}


@pytest.mark.parametrize("placement", MAKERS)
@pytest.mark.parametrize("first", [0, 4])
def test_every_step_gets_its_own_batch_from_any_beginning(placement: str, first: int) -> None:
    feed = MAKERS[placement](Source())
    for step in range(first, 6):
        fetched = feed(step)
        batch = jax.tree.map(lambda leaf, at=fetched.position: np.asarray(leaf[at]), fetched.batches)
        assert batch.tokens.tolist() == [[step] * 4] * 2
        assert batch.segments.tolist() == [[step + 100] * 4] * 2
        assert batch.targets.tolist() == [step]
    feed.close()


def test_the_host_is_two_batches_ahead_and_never_beyond_the_end(wait_for: Callable[..., None]) -> None:
    source = Source()
    feed = HostFeed(source, TOTAL)
    feed(0)
    wait_for(lambda: source.made == list(range(1 + AHEAD)), "two batches made ahead")
    for step in range(1, TOTAL):
        feed(step)
    feed.close()
    assert source.made == list(range(TOTAL))


def test_a_batch_that_was_ready_cost_no_wait(wait_for: Callable[..., None]) -> None:
    source = Source()
    feed = HostFeed(source, TOTAL)
    feed(0)
    wait_for(lambda: feed._coming[0][1].done(), "the next batch")
    fetched = feed(1)
    assert (fetched.data_ms, fetched.transfer_ms) == (0.0, 0.0)
    feed.close()


def test_the_wait_for_a_slow_source_is_told_as_data_not_as_transfer() -> None:
    gate = threading.Event()

    def slow(step: int) -> Batch:
        gate.wait(10)
        return Source()(step)

    feed = HostFeed(slow, 1)
    threading.Timer(0.05, gate.set).start()
    fetched = feed(0)
    assert fetched.data_ms >= 40
    assert fetched.transfer_ms < fetched.data_ms
    feed.close()


def test_an_epoch_crosses_to_the_device_once_and_the_next_is_made_meanwhile(
    wait_for: Callable[..., None],
) -> None:
    source = Source()
    feed = DeviceFeed(source, 6, PER_EPOCH)
    first = feed(0)
    assert first.batches.tokens.shape == (PER_EPOCH, 2, 4)
    wait_for(lambda: len(source.made) == 6, "the second epoch being packed")
    assert feed(2).batches is first.batches
    assert feed(2).transfer_ms == 0.0
    assert feed(3).batches is not first.batches
    assert source.made == list(range(6))
    feed.close()


def test_a_source_that_fails_fails_the_step_that_needs_it() -> None:
    def broken(step: int) -> Batch:
        raise OSError("gone")

    feed = HostFeed(broken, 1)
    with pytest.raises(OSError, match="gone"):
        feed(0)
    feed.close()
