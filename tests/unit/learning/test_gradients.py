"""Gradients over rollouts: the mean of each one's, padded, and unrolled through episodes."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from learning_parts import NETWORKS, graphs_of
from numpy_network import NumpyNetwork
from rollout_samples import column_of, random_rollouts

from relaax.learning.gradients_tf import GraphRollouts, RolloutGradients
from relaax.learning.networks import initial_parameters
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.rollouts import Columns, RolloutBatch
from relaax.observations import mapped

pytestmark = pytest.mark.usefixtures("tensorflow")


class SquaredOutputs:
    """Half the squares of all that the policy head puts out in rows that are valid."""

    def loss(self, outputs, batch):
        squares = tf.reduce_sum(tf.square(outputs["policy"][:-1]), axis=-1)
        loss = tf.reduce_sum(batch.valid * squares) / 2.0
        return loss, {"squares": 2.0 * loss, "rewards": tf.reduce_sum(batch.rewards)}


def make_case(name):
    network, dtype = NETWORKS[name]
    tensors = ParameterTensors(network)
    columns = Columns(network.observation_shape, dtype, (), np.int32, network.lstm_size)
    vector = initial_parameters(network.manifest, "uniform", 7)
    return SimpleNamespace(
        network=network,
        gradients=RolloutGradients(network, tensors, SquaredOutputs(), 5, columns),
        vector=vector,
        parameters=tensors.unpack(vector),
        rollouts=random_rollouts(network, dtype=dtype),
    )


@pytest.fixture(name="case", params=NETWORKS)
def _case(request):
    return make_case(request.param)


def squares_of(case, vector):
    """The sum of squares, by the numpy twin."""
    twin = NumpyNetwork(case.network, case.network.manifest.unpack(vector))
    total = 0.0
    for column in range(case.rollouts.count):
        outputs, _ = twin.forward(
            mapped(lambda part: part[:-1, column], case.rollouts.observations),  # noqa: B023
            case.rollouts.recurrent_state[:, column : column + 1],
            1 - case.rollouts.starts[:-1, column],
        )
        squares = (outputs["policy"] ** 2).sum(axis=1)
        total += (case.rollouts.valid[:, column] * squares).sum()
    return total


def test_terms_are_means_over_the_steps_of_all_rollouts(case):
    terms, steps = (
        case.gradients.gradient(case.parameters, case.rollouts).terms,
        case.rollouts.steps,
    )
    assert terms["squares"] == pytest.approx(squares_of(case, case.vector) / steps, rel=1e-4)
    assert terms["rewards"] == pytest.approx(case.rollouts.rewards.sum() / steps, rel=1e-4)


@pytest.mark.xla
def test_the_gradient_agrees_with_finite_differences(case):
    """Of the mean loss of three rollouts, along random directions, in float64."""
    gradient = case.gradients.gradient(case.parameters, case.rollouts).vector
    directions = np.random.default_rng(2).normal(size=(5, case.vector.size))
    for direction in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        ahead, behind = (
            squares_of(case, case.vector.astype(np.float64) + sign * 1e-5 * direction)
            for sign in (1, -1)
        )
        slope = (ahead - behind) / 2e-5 / 2 / 3
        assert gradient @ direction == pytest.approx(slope, rel=2e-3, abs=2e-4)


def test_a_batch_has_the_mean_of_its_rollouts_gradients(case):
    whole = case.gradients.gradient(case.parameters, case.rollouts).vector
    parts = [
        case.gradients.gradient(case.parameters, column_of(case.rollouts, column)).vector
        for column in range(3)
    ]
    np.testing.assert_allclose(whole, np.mean(parts, axis=0), rtol=1e-3, atol=1e-5)


@pytest.mark.xla
@pytest.mark.parametrize("name", ["dense", "image"])
def test_prepared_gradients_are_padded_to_sizes_that_are_ready(name, monkeypatch):
    graphs = graphs_of(monkeypatch)
    case = make_case(name)
    expected = case.gradients.gradient(case.parameters, case.rollouts).vector
    case.gradients.prepare(case.parameters, 9)
    prepared = graphs()
    found = case.gradients.gradient(case.parameters, case.rollouts).vector
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    case.gradients.gradient(case.parameters, column_of(case.rollouts, 0))
    assert graphs() == prepared


def test_a_new_episode_inside_a_rollout_forgets_the_one_before():
    """What is put out from an episode's start on does not depend on what came before."""
    case = make_case("recurrent")
    rollout = column_of(case.rollouts, 0)
    starts, valid = np.zeros_like(rollout.starts), np.zeros_like(rollout.valid)
    starts[3] = 1
    valid[3:] = 1
    squares = []
    for factor in (1, -5):
        observations = rollout.observations.copy()
        observations[:3] *= factor
        changed = dataclasses.replace(
            rollout, observations=observations, starts=starts, valid=valid
        )
        squares.append(case.gradients.gradient(case.parameters, changed).terms["squares"])
    assert squares[0] == pytest.approx(squares[1], abs=1e-6)


def test_a_graph_has_the_columns_of_a_batch_in_its_order():
    of_graph = [field.name for field in dataclasses.fields(GraphRollouts)]
    of_batch = [field.name for field in dataclasses.fields(RolloutBatch)]
    assert [*of_graph, "versions"] == of_batch
