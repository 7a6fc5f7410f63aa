"""A learner whose whole update is one graph over the rollouts of its tables."""

import numpy as np
import pytest
from rollout_samples import random_rollouts

from relaax.algorithm_base import Input
from relaax.learning.networks import Dense, Head, Network

pytestmark = pytest.mark.usefixtures("tensorflow")

NETWORK = Network.of((4,), (Dense(5),), (Head("policy", 3),))


@pytest.fixture(name="learner")
def _learner():
    import tensorflow as tf

    from relaax.learning.graph_learner_tf import GraphLearner
    from relaax.learning.off_policy.variables_tf import Variables

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
