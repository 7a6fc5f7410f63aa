"""Several policies at one parameter server: each has its own vector and versions."""

import numpy as np
import pytest
from checkpoints import saver
from processes import free_port

from relaax.algorithm_base import (
    Checkpoint,
    CheckpointMismatch,
    Gradient,
    Lineage,
    NewValues,
    NullMetrics,
    Version,
)
from relaax.errors import BridgeError, NotContinued
from relaax.parameters import BridgeControl, published
from relaax.parameters.optimizers import SGD
from relaax.parameters.parameter_server import ParameterServer, ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.published import PublishedParameters

INITIAL = np.arange(3, dtype=np.float32)
ONE, OTHER = INITIAL + 1, INITIAL + 2


def served(directory):
    store = PublishedParameters(INITIAL)
    service = ParameterService(store, NullMetrics())
    server = ParameterServer(store, service, saver(directory), {"network": 1}, 1e9)
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


def test_a_name_that_cannot_be_is_not_pulled_either(link):
    with pytest.raises(BridgeError, match="policy 'a/b': a name has"):
        link.pull(policy="a/b")


def test_there_are_no_more_policies_than_are_allowed(link, monkeypatch):
    monkeypatch.setattr(published, "MOST_POLICIES", 1)
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


@pytest.mark.parametrize(
    ("name", "tensor", "reason"),
    [
        ("policies/a/parameters", ONE[:2], "have shape"),
        ("policies/a/counts", np.zeros(1, np.int64), ""),
        ("policies/a/counts", None, "counts"),
        ("policies/a/published/time", np.zeros(0), ""),
    ],
)
def test_a_policy_that_is_damaged_in_a_checkpoint_is_refused_by_name(name, tensor, reason):
    before = PublishedParameters(INITIAL)
    before.push(NewValues(ONE, 1), "a")
    snapshot = before.snapshot()
    del snapshot.slots[name]
    if tensor is not None:
        snapshot.slots[name] = tensor
    with pytest.raises(CheckpointMismatch, match=f"policy 'a' is damaged: .*{reason}"):
        PublishedParameters(INITIAL).restore(snapshot)


def test_a_checkpoint_of_before_policies_had_a_lineage_goes_on_with_the_default_ones(tmp_path):
    own, text = Lineage("0123abcd", holds=5, resumes=5), np.zeros(64, np.uint8)
    text[:8] = np.frombuffer(b"0123abcd", np.uint8)
    saver(tmp_path).save(
        Checkpoint(
            tensors={
                "parameters": ONE,
                "published/time": np.array([1.8e9]),
                "published/iteration": np.array([7]),
                "published/message": np.zeros(256, np.uint8),
                "published/training": text,
                "published/resumes": np.array([5]),
                "policies/a/parameters": OTHER,
                "policies/a/counts": np.array([3, 9]),
            },
            global_t=40,
            version=2,
            fingerprint={"network": 1},
        )
    )
    link = served(tmp_path).bridge()
    default, other = link.pull(), link.pull(policy="a")
    np.testing.assert_array_equal(default.vector, ONE)
    np.testing.assert_array_equal(other.vector, OTHER)
    assert (default.version.number, other.version.number, default.global_t) == (2, 3, 40)
    assert (default.info.iteration, other.info.iteration) == (7, 9)
    with pytest.raises(NotContinued):
        link.push(NewValues(ONE, 10, lineage=Lineage("4567cdef")), policy="a")
    assert link.push(NewValues(ONE, 10, lineage=own), policy="a").version.number == 4
