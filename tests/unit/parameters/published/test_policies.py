"""Several policies at one parameter server: each has its own vector and versions."""

import numpy as np
import pytest
from checkpoints import saver
from processes import free_port

from relaax.algorithm_base import CheckpointMismatch, Gradient, NewValues, NullMetrics, Version
from relaax.errors import BridgeError
from relaax.parameters import BridgeControl
from relaax.parameters.optimizers import SGD
from relaax.parameters.parameter_store import ParameterService, ParameterStore
from relaax.parameters.published import policies as published_policies
from relaax.parameters.published import serve_published

INITIAL = np.arange(3, dtype=np.float32)
ONE, OTHER = INITIAL + 1, INITIAL + 2


def served(directory):
    server = serve_published(INITIAL, {"network": 1}, 1e9, saver(directory), NullMetrics())
    server.restore_latest_checkpoint()
    return server


@pytest.fixture(name="link")
def _link(tmp_path):
    url = f"127.0.0.1:{free_port()}"
    running = BridgeControl().start_parameter_server(url, served(tmp_path).bridge())
    link = BridgeControl().parameter_server_stub(url)
    yield link
    link.close()
    running.stop(0)


def test_each_policy_has_values_and_versions_of_its_own(link):
    link.push(NewValues(ONE, 1), policy="a")
    second = link.push(NewValues(OTHER, 2), policy="a").version
    first = link.push(NewValues(OTHER, 2), policy="b").version
    assert (second.number, first.number) == (2, 1)
    np.testing.assert_array_equal(link.pull(first, policy="a").vector, OTHER)
    assert link.pull(second, policy="a").vector is None
    np.testing.assert_array_equal(link.pull().vector, INITIAL)
    assert link.pull().version.number == 0


def test_a_policy_has_the_initial_values_until_others_are_pushed(link):
    link.push(NewValues(ONE, 1))
    values = link.pull(policy="later")
    np.testing.assert_array_equal(values.vector, INITIAL)
    assert values.version.number == 0
    link.push(NewValues(OTHER, 1), policy="later")
    np.testing.assert_array_equal(link.pull(values.version, policy="later").vector, OTHER)


@pytest.mark.parametrize(
    ("vector", "policy", "message"),
    [
        (ONE[:2], "a", r"policy 'a' have shape \(2,\), not \(3,\)"),
        (ONE * np.nan, "a", "policy 'a' are not finite"),
        (ONE, "a/b", "policy 'a/b': a name has"),
        (ONE, "a" * 65, "a name has 1 to 64"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_by_name(link, vector, policy, message):
    with pytest.raises(BridgeError, match=message):
        link.push(NewValues(vector, 1), policy=policy)


def test_there_are_no_more_policies_than_are_allowed(link, monkeypatch):
    monkeypatch.setattr(published_policies, "MOST_POLICIES", 1)
    link.push(NewValues(ONE, 1), policy="a")
    with pytest.raises(BridgeError, match="policy 'b': a training has 1 at most"):
        link.push(NewValues(ONE, 1), policy="b")
    link.push(NewValues(OTHER, 2), policy="a")


def test_where_gradients_move_the_values_there_is_one_policy():
    store = ParameterStore(INITIAL, SGD(3, 0.0), lambda global_t: 0.1)
    service = ParameterService(store, NullMetrics())
    with pytest.raises(ValueError, match="there is no policy 'a'"):
        service.pull(policy="a")
    with pytest.raises(ValueError, match="there is no policy 'a'"):
        service.push(Gradient(ONE, Version(0)), policy="a")


def test_policies_are_in_checkpoints(tmp_path):
    before = served(tmp_path)
    before.bridge().push(NewValues(ONE, 5), policy="a")
    before.bridge().push(NewValues(OTHER, 6), policy="b-1")
    before.save_checkpoint()
    after = served(tmp_path).bridge()
    for policy, vector in (("a", ONE), ("b-1", OTHER)):
        values = after.pull(policy=policy)
        np.testing.assert_array_equal(values.vector, vector)
        assert values.version.number == 1


def test_what_is_pushed_to_a_policy_is_saved_between_checkpoints_too(tmp_path):
    server = served(tmp_path)
    server.bridge().push(NewValues(ONE, 5), policy="a")
    server.save_published()
    np.testing.assert_array_equal(served(tmp_path).bridge().pull(policy="a").vector, ONE)


def test_policies_of_another_size_in_a_checkpoint_are_refused_by_name():
    policies = published_policies.Policies(INITIAL)
    policies.replace("a", ONE, 1)
    with pytest.raises(CheckpointMismatch, match="policy 'a' have shape"):
        published_policies.Policies(INITIAL[:2]).restore(policies.tensors())


def test_a_policy_whose_counts_are_missing_in_a_checkpoint_is_refused_by_name():
    policies = published_policies.Policies(INITIAL)
    policies.replace("a", ONE, 1)
    tensors = policies.tensors()
    del tensors["policies/a/counts"]
    with pytest.raises(CheckpointMismatch, match="policy 'a'"):
        published_policies.Policies(INITIAL).restore(tensors)
