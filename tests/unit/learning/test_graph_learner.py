"""A learner whose whole update is one graph over the rollouts of its tables."""

from dataclasses import replace

import numpy as np
import pytest
from rollout_samples import random_rollouts

from relaax.algorithm_base import Input
from relaax.learning.networks import LSTM, Dense, Head, Network

pytestmark = pytest.mark.usefixtures("tensorflow")

NETWORK = Network.of((4,), (Dense(5),), (Head("policy", 3),))


@pytest.fixture(name="learner")
def _learner():
    import tensorflow as tf

    from relaax.learning.graph_learner_tf import GraphLearner
    from relaax.learning.variables_tf import Variables

    class Counting(GraphLearner):
        """Adds the number of steps of its first table to each parameter."""

        def update(self, fresh, replayed):
            steps = tf.reduce_sum(fresh.valid)
            self.variables["policy"].assign_add(tf.fill([2], steps))
            terms = {"fresh": steps, "replayed": tf.reduce_sum(replayed.valid)}
            return terms, {"replayed": tf.reduce_sum(replayed.valid, axis=0)}

    variables = Variables({"policy": np.zeros(2, np.float32)}, {}, {"policy": 1e-3})
    inputs = {"fresh": Input(2, is_on_policy=True), "replayed": Input(3)}
    return Counting(variables, inputs)


def batches():
    few, many = random_rollouts(NETWORK, count=2), random_rollouts(NETWORK, count=3)
    return {"replayed": many, "fresh": few}


def test_an_update_is_given_the_rollouts_of_each_table_in_the_order_of_its_inputs(learner):
    drawn = batches()
    (step,) = learner.steps(drawn)
    assert step.terms == {name: part.steps for name, part in drawn.items()}
    np.testing.assert_array_equal(step.priorities["replayed"], drawn["replayed"].valid.sum(axis=0))
    np.testing.assert_array_equal(learner.values()["default"], np.full(2, drawn["fresh"].steps))
    assert {name: each.batch_size for name, each in learner.inputs.items()} == {
        "fresh": 2,
        "replayed": 3,
    }


def test_what_it_had_learnt_is_restored(learner):
    before = {name: part.copy() for name, part in learner.state().items()}
    list(learner.steps(batches()))
    learner.restore(before)
    assert (learner.values()["default"] == 0).all()


def test_a_vector_of_parameters_is_unrolled_over_rollouts_as_over_single_observations():
    from relaax.learning.networks.parameters_tf import outputs_of, unrolled

    rollouts = random_rollouts(NETWORK, count=2, steps=3)
    vector = np.random.default_rng(0).normal(size=NETWORK.manifest.size).astype(np.float32)
    found = unrolled(NETWORK, vector, rollouts)["policy"]
    expected = [outputs_of(NETWORK, vector, row)["policy"] for row in rollouts.observations]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert not unrolled(NETWORK, vector, rollouts, heads=())


def test_no_gradient_flows_into_a_burn_in():
    """It is that of the rows which are learnt from, begun with the state behind the burn-in."""
    import tensorflow as tf

    from relaax.learning.networks.layers_tf import lstm_step
    from relaax.learning.networks.parameters_tf import unrolled

    network = Network.of((4,), (LSTM(3),), (Head("policy", 3),))
    vector = tf.random.stateless_normal([network.manifest.size], [1, 2])
    whole = random_rollouts(network, count=1, steps=5)
    rows = np.float32([[0], [0], [1], [1], [1]])
    whole = replace(whole, valid=rows, starts=np.zeros_like(whole.starts))
    parameters, after = network.manifest.unpack(vector.numpy()), whole.recurrent_state
    for row in whole.observations[:2]:
        after = lstm_step(parameters, tf.constant(row), after)
    rest = replace(
        whole,
        observations=whole.observations[2:],
        starts=whole.starts[2:],
        valid=rows[2:],
        recurrent_state=after,
    )
    slopes = []
    for rollouts, learnt in ((whole, slice(2, None)), (rest, slice(None))):
        with tf.GradientTape() as tape:
            tape.watch(vector)
            loss = tf.reduce_sum(tf.square(unrolled(network, vector, rollouts)["policy"][learnt]))
        slopes.append(tape.gradient(loss, vector))
    np.testing.assert_allclose(*slopes, rtol=1e-4, atol=1e-6)
