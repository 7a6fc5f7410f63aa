"""How many environments and connections there are, as their workers report."""

from clock import Clock
from served_worker import StoredMetrics

from relaax.telemetry.metrics import CONNECTIONS_OF, ENVIRONMENTS_OF, NullMetrics
from relaax.telemetry.training import WorkerCount


def test_the_numbers_of_all_workers_are_added_up_and_passed_to_nothing_else():
    stored = StoredMetrics()
    count = WorkerCount(stored, ENVIRONMENTS_OF)
    count.scalar("server/environments of a:1", 3)
    count.scalar("server/environments of b:1", 4)
    count.scalar("server/environments of a:1", 5)
    assert count.total() == 9
    assert stored.values == []


def test_other_scalars_are_passed_on():
    stored = StoredMetrics()
    WorkerCount(stored, ENVIRONMENTS_OF).scalar("episode/reward", 1.0, 7)
    assert stored.values == [("episode/reward", 1.0, 7)]


def test_environments_and_connections_are_counted_apart():
    environments = WorkerCount(NullMetrics(), ENVIRONMENTS_OF)
    connections = WorkerCount(environments, CONNECTIONS_OF)
    connections.scalar("server/environments of a:1", 8)
    connections.scalar("server/connections of a:1", 2)
    assert (environments.total(), connections.total()) == (8, 2)


def test_a_worker_that_has_ended_counts_no_more():
    count = WorkerCount(NullMetrics(), ENVIRONMENTS_OF)
    count.scalar("server/environments of a:1", 3)
    count.scalar("server/environments of a:1", 0)
    assert count.total() == 0


def test_a_worker_that_was_killed_is_forgotten_after_half_a_minute():
    clock = Clock(0.0)
    count = WorkerCount(NullMetrics(), ENVIRONMENTS_OF, clock)
    count.scalar("server/environments of a:1", 3)
    clock.now = 29.0
    assert count.total() == 3
    clock.now = 31.0
    assert count.total() == 0
