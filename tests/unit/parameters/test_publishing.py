"""Publishing and fetching parameters over real gRPC on the loopback interface."""

import numpy as np
import pytest
from processes import free_port

from relaax.algorithm_base import Evaluations, Lineage, NewValues, NullMetrics
from relaax.errors import BridgeError, ParameterServerAway
from relaax.parameters import Bridge, BridgeControl, stub
from relaax.parameters.optimizers import SGD
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.published import PublishedParameters
from relaax.telemetry.metrics import EVALUATION_REWARD_AFTER, EVALUATION_REWARD_OF

INITIAL = np.zeros(3, np.float32)
VECTOR = np.array([1.5, -2.0, 0.25], np.float32)


@pytest.fixture(name="serving")
def _serving():
    """Serves an object, and returns a stub for it."""
    servers, stubs = [], []

    def serve(service):
        address = f"127.0.0.1:{free_port()}"
        servers.append(BridgeControl().start_parameter_server(address, service))
        stubs.append(Bridge(address))
        return stubs[-1]

    yield serve
    for bridge in stubs:
        bridge.close()
    for server in servers:
        server.stop(0)


@pytest.fixture(name="bridge")
def _bridge(serving):
    return serving(ParameterService(PublishedParameters(INITIAL), NullMetrics()))


def test_before_anything_is_published_nothing_is_known_of_it(bridge):
    values = bridge.pull()
    np.testing.assert_array_equal(values.vector, INITIAL)
    assert values.info is None


def test_values_come_with_how_they_were_published(bridge):
    bridge.push(NewValues(VECTOR, 7, "a message"))
    found = bridge.pull()
    np.testing.assert_array_equal(found.vector, VECTOR)
    assert (found.info.iteration, found.info.message) == (7, "a message")
    assert found.info.time > 1.7e9
    again = bridge.pull(found.version)
    assert (again.vector, again.info) == (None, found.info)


def test_actors_get_a_new_version_when_other_values_are_published(bridge):
    first = bridge.get_values()
    bridge.push(NewValues(VECTOR, 1))
    second = bridge.get_values(first.version)
    np.testing.assert_array_equal(second.vector, VECTOR)
    bridge.push(NewValues(VECTOR, 2))
    assert bridge.get_values(second.version).vector is None


def test_a_vector_of_another_size_is_refused(bridge):
    with pytest.raises(BridgeError, match=r"have shape \(2,\), not \(3,\)"):
        bridge.push(NewValues(VECTOR[:2], 1))


def test_a_learner_does_not_wait_long_for_a_parameter_server_that_is_away(monkeypatch):
    monkeypatch.setattr(stub, "PUBLISH_TIMEOUT_S", 0.2)
    bridge = Bridge(f"127.0.0.1:{free_port()}")
    with pytest.raises(ParameterServerAway, match="did not take the published values"):
        bridge.push(NewValues(VECTOR, 1))
    bridge.close()


def test_values_that_are_published_are_not_moved_by_gradients(bridge):
    with pytest.raises(BridgeError, match="are published, and not moved by gradients"):
        bridge.apply_gradients(VECTOR)


def test_values_that_gradients_move_cannot_be_published(serving):
    store = ParameterStore(INITIAL, SGD(3, 0.0), lambda global_t: 0.1)
    bridge = serving(ParameterService(store, NullMetrics()))
    with pytest.raises(BridgeError, match="moved by gradients, and not published"):
        bridge.push(NewValues(VECTOR, 1))
    assert bridge.pull().info is None


def test_the_age_of_what_was_published_comes_with_it(bridge):
    assert bridge.get_values().age_s is None
    bridge.push(NewValues(VECTOR, 1))
    first, second = bridge.pull().age_s, bridge.pull().age_s
    assert 0 <= first <= second


def evaluated(service, version, score):
    service.metrics().scalar(EVALUATION_REWARD_OF, score, version)


def test_a_learner_gets_each_score_once_with_its_own_step(serving):
    service = ParameterService(PublishedParameters(INITIAL), NullMetrics())
    bridge = serving(service)
    assert bridge.evaluations() == Evaluations(0, [])
    bridge.push(NewValues(VECTOR, 7))
    bridge.push(NewValues(2 * VECTOR, 9))
    for version, score in ((1, 10.0), (2, 20.0), (1, 11.0)):
        evaluated(service, version, score)
    assert bridge.evaluations() == Evaluations(3, [(7, 10.0), (9, 20.0), (7, 11.0)])
    evaluated(service, 2, 21.0)
    assert bridge.evaluations(3) == Evaluations(4, [(9, 21.0)])
    assert bridge.evaluations(4) == Evaluations(4, [])


def test_after_a_restart_of_the_parameter_server_scores_are_counted_anew(serving):
    service = ParameterService(PublishedParameters(INITIAL), NullMetrics())
    bridge = serving(service)
    bridge.push(NewValues(VECTOR, 7))
    evaluated(service, 1, 10.0)
    assert bridge.evaluations(after=100) == Evaluations(1, [(7, 10.0)])


def test_scores_of_what_no_learner_has_published_are_dropped(serving):
    service = ParameterService(PublishedParameters(INITIAL), NullMetrics())
    bridge = serving(service)
    evaluated(service, 0, 1.0)
    saved = Lineage("aaaa", holds=5, resumes=5)
    bridge.push(NewValues(VECTOR, 7, lineage=saved))
    bridge.push(NewValues(2 * VECTOR, 5, lineage=saved))  # it has gone back to its checkpoint
    evaluated(service, 1, 2.0)
    evaluated(service, 2, 3.0)
    assert bridge.evaluations().scores == [(5, 3.0)]


def test_a_score_may_come_with_the_learners_own_step(serving):
    service = ParameterService(PublishedParameters(INITIAL), NullMetrics())
    bridge = serving(service)
    bridge.push(NewValues(VECTOR, 7))
    service.metrics().scalar(EVALUATION_REWARD_AFTER, 4.0, 3)
    service.metrics().scalar(EVALUATION_REWARD_AFTER, 5.0)  # of which, is not known
    service.metrics().scalar(EVALUATION_REWARD_AFTER, 5.0, 9)  # of before the learner went back
    evaluated(service, 1, 6.0)
    assert bridge.evaluations().scores == [(3, 4.0), (7, 6.0)]


def test_what_is_asked_of_a_closed_stub_is_an_error_of_the_bridge(serving):
    bridge = serving(ParameterService(PublishedParameters(INITIAL), NullMetrics()))
    bridge.close()
    with pytest.raises(ParameterServerAway, match="is closed"):
        bridge.evaluations()


def test_environments_have_places_over_grpc(serving):
    first = serving(ParameterService(PublishedParameters(INITIAL), NullMetrics()))
    assert list(first.places([0, 1])) == [0, 1]
    assert list(first.places([1])) == [1]
    assert list(first.places([1, 2])) == [1, 0]
