"""Batches are ready before they are asked for, and no more of them than agreed."""

import itertools
import threading
from contextlib import closing

import pytest

from relaax.server.learner.prefetcher import Prefetcher


def wait_until(condition, deadline_s=5.0):
    step = threading.Event()
    for _ in range(int(deadline_s / 0.01)):
        if condition():
            return
        step.wait(0.01)
    pytest.fail("it did not happen")


def test_batches_come_in_the_order_in_which_they_were_fetched():
    numbers = itertools.count()
    with closing(Prefetcher(lambda: next(numbers), depth=3)) as prefetcher:
        assert [prefetcher.get(5) for _ in range(10)] == list(range(10))


def test_no_more_is_fetched_than_fits():
    numbers = itertools.count()
    fetched = []

    def fetch():
        fetched.append(next(numbers))
        return fetched[-1]

    with closing(Prefetcher(fetch, depth=2)) as prefetcher:
        wait_until(lambda: prefetcher.depth == 2 and len(fetched) == 3)
        assert prefetcher.get(5) == 0
        wait_until(lambda: len(fetched) == 4)
    assert len(fetched) == 4


def test_nothing_is_returned_while_nothing_is_there():
    gate = threading.Event()

    def fetch():
        return "batch" if gate.wait(0.01) else None

    with closing(Prefetcher(fetch, depth=1)) as prefetcher:
        assert prefetcher.get(0.05) is None
        gate.set()
        assert prefetcher.get(5) == "batch"


def test_what_fetching_raises_is_raised_after_what_was_ready():
    numbers = iter([1, 2])
    with closing(Prefetcher(lambda: next(numbers), depth=5)) as prefetcher:
        assert [prefetcher.get(5), prefetcher.get(5)] == [1, 2]
        with pytest.raises(StopIteration):
            prefetcher.get(5)


def test_closing_ends_a_thread_whose_batch_does_not_fit():
    prefetcher = Prefetcher(lambda: 1, depth=1)
    wait_until(lambda: prefetcher.depth == 1)
    prefetcher.close()
    assert not any(thread.name.startswith("prefetch-") for thread in threading.enumerate())


@pytest.mark.parametrize(("depth", "threads"), [(0, 1), (1, 0)])
def test_depth_and_threads_are_at_least_one(depth, threads):
    with pytest.raises(ValueError, match="must be at least 1"):
        Prefetcher(lambda: 1, depth, threads)
