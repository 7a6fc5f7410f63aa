"""The process of a learner: batches of all its inputs, with rewards and states as it asks."""

from dataclasses import replace

import numpy as np
import pytest
from driven_learner import DrivenLearner
from learner_parts import parameter_service, parameter_store
from rollout_samples import random_rollouts

from relaax.algorithm_base import DEFAULT, Gradient, Input, Learner, Step
from relaax.learning.filters import Filters
from relaax.learning.networks import Dense, Head, Network
from relaax.learning.placements.process import InProcess, Rewards

NETWORK = Network.of((4,), (Dense(5),), (Head("policy", 3),))


class Setting(Learner):
    """Sets its values, and keeps the batches that it was given."""

    def __init__(self):
        self.inputs = {"newest": Input(2, is_on_policy=True), "any": Input(3)}
        self.batches = None

    def steps(self, batches):
        self.batches = batches
        yield Step(terms={"loss": 1.0})

    def values(self):
        return {DEFAULT: np.zeros(2, np.float32)}


class Moving(Setting):
    """Yields gradients, each with terms of its own."""

    def steps(self, batches):
        self.batches = batches
        for number in range(2):
            update = Gradient(np.ones(parameter_store().pull().vector.size, np.float32))
            yield Step(terms={"loss": float(number), f"of {number}": 3.0}, update=update)

    def values(self):
        return {}


def drawn():
    few, many = random_rollouts(NETWORK, count=2), random_rollouts(NETWORK, count=3)
    return {"newest": few, "any": many}


@pytest.mark.parametrize("store", [None, parameter_store()])
def test_a_learner_of_gradients_is_given_a_batch_of_each_input_by_its_name(store):
    learner, batches = Moving(), drawn()
    process = InProcess(learner, Filters(), store=store)
    step = DrivenLearner(process, None if store else parameter_service()).step(batches)
    assert {name: batch.count for name, batch in learner.batches.items()} == {"newest": 2, "any": 3}
    assert step.updates == 2
    assert (step.terms["loss"], step.terms["of 0"], step.terms["of 1"]) == (0.5, 3.0, 3.0)


def test_a_learner_that_sets_its_values_learns_of_scaled_and_cut_rewards():
    learner, batches = Setting(), drawn()
    list(InProcess(learner, Filters(), Rewards(scale=2.0, clips=True)).steps(batches))
    for name, batch in batches.items():
        expected = np.clip(2 * batch.rewards * batch.valid, -1, 1)
        np.testing.assert_allclose(learner.batches[name].rewards * batch.valid, expected)


def test_a_learner_that_sets_its_values_learns_of_filtered_states_and_publishes_their_scale():
    learner, batches = Setting(), drawn()
    process = InProcess(learner, Filters({"": 4}))
    list(process.steps(batches))
    seen = np.concatenate([batch.observations[:-1][batch.valid > 0] for batch in batches.values()])
    batch = learner.batches["any"]
    expected = (batches["any"].observations - seen.mean(axis=0)) / seen.std(axis=0)
    np.testing.assert_allclose(batch.observations, expected.clip(-10, 10), atol=1e-4)
    assert len(process.values()[DEFAULT]) == 2 + Filters({"": 4}).length
    again = InProcess(Setting(), Filters({"": 4}))
    again.restore(process.state())
    np.testing.assert_array_equal(again.values()[DEFAULT], process.values()[DEFAULT])


def test_batches_that_cannot_be_filtered_are_refused():
    process = InProcess(Setting(), Filters(), Rewards(scale=2.0))
    with pytest.raises(TypeError, match="dict: the learner's process filters states of rollouts"):
        list(process.steps({"newest": {"reward": np.zeros(3)}}))


def test_nothing_is_learnt_of_newest_rollouts_without_a_step():
    learner, batches = Setting(), drawn()
    empty = replace(batches["newest"], valid=np.zeros_like(batches["newest"].valid))
    assert not list(InProcess(learner, Filters()).steps({**batches, "newest": empty}))
    assert learner.batches is None
