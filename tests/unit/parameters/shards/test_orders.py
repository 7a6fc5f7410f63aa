"""The orders of the first shard, of which the oldest are forgotten."""

import pytest

from relaax.parameters.process.shards import orders
from relaax.parameters.process.shards.orders import Beginning, OrderLog, Update


def log_of(count):
    """A log of so many orders."""
    log = OrderLog(Beginning(1, 0, 0, "", None))
    for number in range(count):
        log.add(update(number))
    return log


def update(number):
    return Update(worker=7, sequence=number, number=number + 1, global_t=10 * number, steps=10)


def test_orders_keep_their_positions_when_those_before_are_forgotten():
    log = log_of(10)
    log.forget_before(4)
    log.forget_before(2)  # these are forgotten already
    assert (log.end, len(log.orders)) == (10, 6)
    assert [log.at(position) for position in (4, 9)] == [update(4), update(9)]
    for position in (3, 10):
        with pytest.raises(LookupError, match=f"order {position} is not kept"):
            log.at(position)
    assert [log.has(position) for position in (3, 4, 10, 11)] == [False, True, True, False]


def test_all_may_be_forgotten():
    log = log_of(10)
    log.forget_before(10)
    log.add(update(10))
    assert (log.end, log.at(10)) == (11, update(10))


def test_no_more_than_the_latest_are_kept(monkeypatch):
    monkeypatch.setattr(orders, "MOST_KEPT", 5)
    log = log_of(8)
    assert (log.end, log.forgotten) == (8, 3)
    assert [log.at(position) for position in range(3, 8)] == [update(n) for n in range(3, 8)]
