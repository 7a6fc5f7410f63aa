"""A replica answers with its primary's values; both over real gRPC on the loopback interface."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import numpy as np
import pytest
from processes import free_port, wait_for

from relaax.algorithm_base import Gradient, Metrics, NewValues, NullMetrics, Values, Version
from relaax.errors import ParameterServerAway
from relaax.parameters import Bridge, BridgeControl
from relaax.parameters.optimizers import SGD
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.process.replica import ReplicaService
from relaax.parameters.published import PublishedParameters
from relaax.telemetry.metrics import EVALUATION_REWARD_OF

INITIAL, VECTOR = np.zeros(3, np.float32), np.array([1.5, -2.0, 0.25], np.float32)


def moved():
    return ParameterService(ParameterStore(INITIAL, SGD(3, 0.0), lambda _: 1.0), NullMetrics())


def published():
    return ParameterService(PublishedParameters(INITIAL), NullMetrics())


@contextmanager
def served(service, address: str) -> Iterator[None]:
    server = BridgeControl().start_parameter_server(address, service)
    try:
        yield
    finally:
        server.stop(0)


class Pair:
    """A primary and its replica, and a worker's stub for each."""

    def __init__(self, stack: ExitStack, service) -> None:
        self.primary_url = f"127.0.0.1:{free_port()}"
        self.serving = ExitStack()
        stack.callback(self.serving.close)
        self.start(service)
        self.primary = stack.enter_context(closing(Bridge(self.primary_url)))
        short = stack.enter_context(closing(Bridge(self.primary_url, 1.0, retry_for_s=0.0)))
        self.service = ReplicaService(short)
        replica_url = f"127.0.0.1:{free_port()}"
        stack.enter_context(served(self.service, replica_url))
        self.replica = stack.enter_context(closing(Bridge(replica_url, 1.0, retry_for_s=0.0)))

    def start(self, service) -> None:
        self.serving.enter_context(served(service, self.primary_url))

    def refresh(self) -> None:
        """Once the channel has found the primary again."""

        def refreshed() -> bool:
            try:
                self.service.refresh()
            except ParameterServerAway:
                return False
            return True

        wait_for(refreshed, "the primary")


@pytest.fixture(name="pair_of")
def _pair_of():
    with ExitStack() as stack:
        yield lambda service: Pair(stack, service)


def test_what_is_published_at_the_primary_is_fetched_from_the_replica(pair_of):
    pair = pair_of(published())
    pair.primary.push(NewValues(VECTOR, 7, "a message"))
    info = pair.primary.pull().info
    pair.service.refresh()
    found = pair.replica.pull()
    np.testing.assert_array_equal(found.vector, VECTOR)
    assert found.info == info
    again = pair.replica.pull(found.version)
    assert (again.vector, again.info) == (None, info)


def test_values_grow_older_at_the_replica_too(pair_of):
    pair = pair_of(published())
    assert pair.replica.pull().age_s is None
    pair.primary.push(NewValues(VECTOR, 7))
    pair.service.refresh()
    first, second = pair.replica.pull().age_s, pair.replica.pull().age_s
    assert 0 < first < second


def test_what_is_published_at_the_replica_is_published_at_the_primary(pair_of):
    pair = pair_of(published())
    told = pair.replica.push(NewValues(VECTOR, 7))
    assert pair.primary.pull().info.iteration == 7
    assert (told.vector, told.info.iteration) == (None, 7)
    pair.service.refresh()
    assert pair.replica.pull().version == told.version


def test_other_policies_than_the_default_one_are_at_the_primary(pair_of):
    pair = pair_of(published())
    version = pair.replica.push(NewValues(VECTOR, 7), policy="other").version
    np.testing.assert_array_equal(pair.primary.pull(policy="other").vector, VECTOR)
    np.testing.assert_array_equal(pair.replica.pull(policy="other").vector, VECTOR)
    assert version.number == 1


def test_steps_are_counted_at_the_primary(pair_of):
    pair = pair_of(published())
    assert pair.replica.add(5) == 5
    assert pair.primary.add(0) == 5
    pair.service.refresh()
    assert pair.replica.pull().global_t == 5


def test_gradients_reach_the_primary_with_the_version_that_they_were_computed_with(pair_of):
    pair = pair_of(moved())
    first = pair.replica.pull()
    values = pair.replica.push(Gradient(VECTOR, first.version, 4))
    np.testing.assert_array_equal(values.vector, -VECTOR)
    assert values.global_t == 4
    second = pair.replica.push(Gradient(VECTOR, values.version, 4))
    np.testing.assert_array_equal(second.vector, -2 * VECTOR)
    np.testing.assert_array_equal(pair.primary.pull().vector, -2 * VECTOR)
    assert pair.replica.pull(second.version).vector is None


def test_while_the_primary_is_away_its_values_are_served_and_all_else_waits(pair_of):
    pair = pair_of(published())
    pair.primary.push(NewValues(VECTOR, 7))
    pair.service.refresh()
    pair.serving.close()
    np.testing.assert_array_equal(pair.replica.pull().vector, VECTOR)
    assert pair.replica.pull().info.iteration == 7
    with pytest.raises(ParameterServerAway):
        pair.replica.add(1)


def test_a_primary_that_starts_again_is_followed_and_knows_no_version_of_before(pair_of):
    pair = pair_of(moved())
    before = pair.replica.pull()
    pair.serving.close()
    pair.start(moved())
    pair.refresh()
    values = pair.replica.push(Gradient(VECTOR, before.version, 4))
    np.testing.assert_array_equal(values.vector, INITIAL)  # the gradient was refused
    assert values.version != before.version
    after = pair.replica.push(Gradient(VECTOR, values.version, 4))
    np.testing.assert_array_equal(after.vector, -VECTOR)


class Scores(Metrics):
    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y, x))


class Primary(ParameterService):
    """A primary whose versions a test chooses."""

    def __init__(self, scores=None):
        super().__init__(PublishedParameters(INITIAL), scores or NullMetrics())
        self.version = Version(40, 1)

    def pull(self, known=None, policy="default"):
        vector = None if known == self.version else INITIAL + self.version.number
        return Values(self.version, 0, vector)

    def push(self, update, policy="default"):
        return self.pull(None, policy)


def test_scores_of_evaluations_are_those_of_the_primarys_versions():
    scores = Scores()
    primary = Primary(scores)
    replica = ReplicaService(primary)
    first = replica.pull().version.number
    primary.version = Version(47, 1)
    replica.refresh()
    second = replica.pull().version.number
    for own in (first, second):
        replica.metrics().scalar(EVALUATION_REWARD_OF, 0.5, own)
    replica.metrics().scalar("evaluation/reward", 0.5, 300)
    assert scores.values == [
        (EVALUATION_REWARD_OF, 0.5, 40),
        (EVALUATION_REWARD_OF, 0.5, 47),
        ("evaluation/reward", 0.5, 300),
    ]
    primary.version = Version(3, 2)  # it has started again
    replica.refresh()
    replica.metrics().scalar(EVALUATION_REWARD_OF, 0.5, second)
    assert len(scores.values) == 3


def test_values_of_other_policies_that_a_caller_has_are_not_sent_again():
    primary = Primary()
    replica = ReplicaService(primary)
    known = replica.pull(None, "other").version
    assert replica.pull(known, "other").vector is None
    for number in (3, known.number):  # of which the caller may have those of before
        primary.version = Version(number, 2)  # it has started again
        np.testing.assert_array_equal(replica.pull(known, "other").vector, INITIAL + number)
    primary.version = Version(known.number + 1, 2)
    values = replica.pull(known, "other")
    assert replica.pull(values.version, "other").vector is None


def test_a_learner_at_the_primary_and_an_actor_at_the_replica_have_one_version(pair_of):
    pair = pair_of(published())
    for _ in range(2):
        for number in range(3):
            told = pair.primary.push(NewValues(VECTOR + number, number), policy="other").version
            assert pair.replica.pull(policy="other").version.number == told.number
        pair.serving.close()
        pair.start(published())
        pair.refresh()


def test_other_policies_are_known_over_grpc_too(pair_of):
    pair = pair_of(published())
    version = pair.replica.push(NewValues(VECTOR, 7), policy="other").version
    assert pair.replica.pull(version, "other").vector is None


def test_answers_of_the_primary_that_come_late_do_not_replace_newer_ones():
    primary = Primary()
    replica = ReplicaService(primary)
    primary.version = Version(47, 1)
    newest = replica.push(Gradient(VECTOR)).version
    primary.version = Version(46, 1)
    assert replica.push(Gradient(VECTOR)).version == newest
    primary.version = Version(3, 2)  # it has started again
    np.testing.assert_array_equal(replica.push(Gradient(VECTOR)).vector, INITIAL + 3)


def test_an_answer_from_before_a_start_of_the_primary_does_not_replace_values_since():
    class Slow(Primary):
        """While it answers a gradient, it starts again, and a refresh sees that."""

        def push(self, update, policy="default"):
            late = self.pull()
            self.version = Version(3, 2)
            replica.refresh()
            return late

    primary = Slow()
    replica = ReplicaService(primary)
    np.testing.assert_array_equal(replica.push(Gradient(VECTOR)).vector, INITIAL + 3)
    np.testing.assert_array_equal(replica.pull().vector, INITIAL + 3)
