"""The process of a learner: batches of all its inputs, with rewards and states as it asks."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from driven_learner import DrivenLearner
from learner_parts import parameter_service, parameter_store
from rollout_samples import random_rollouts

from relaax.algorithm_base import DEFAULT, Gradient, Input, Learner, Step, Values, Version
from relaax.errors import ConfigurationError, LearningDiverged
from relaax.learning.filters import Filters
from relaax.learning.networks import Dense, Head, Network
from relaax.learning.off_policy.learner import TransitionBatch
from relaax.learning.placements.process import InProcess, Rewards
from relaax.parameters.optimizers import RMSProp, RMSPropSettings
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.schedule import Remembered, Schedule

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
    newest = batches["newest"]  # those of any age have been counted when they were new
    seen = newest.observations[:-1][newest.valid > 0]
    batch = learner.batches["any"]
    expected = (batches["any"].observations - seen.mean(axis=0)) / seen.std(axis=0)
    np.testing.assert_allclose(batch.observations, expected.clip(-10, 10), atol=1e-4)
    assert len(process.values()[DEFAULT]) == 2 + Filters({"": 4}).length
    again = InProcess(Setting(), Filters({"": 4}))
    again.restore(process.state())
    np.testing.assert_array_equal(again.values()[DEFAULT], process.values()[DEFAULT])


class Saved(Learner):
    """Has a state, whose first version had another name for it."""

    inputs: ClassVar = {"newest": Input(2, is_on_policy=True)}

    def __init__(self, *names, is_published=True):
        self.names, self.is_published, self.restored = names, is_published, None

    def steps(self, batches):
        yield Step()

    def values(self):
        return {DEFAULT: np.zeros(2, np.float32)} if self.is_published else {}

    def state(self):
        return {name: np.arange(5) for name in self.names}

    def converted(self, state):
        assert state.keys() <= {"first", *self.names}  # nothing of the process
        return {name: state.get(name, state.get("first")) for name in self.names}

    def restore(self, state):
        self.restored = {name: state[name].tolist() for name in self.names}


@pytest.mark.parametrize("is_published", [True, False])
@pytest.mark.parametrize("with_store", [True, False])
def test_a_learner_converts_its_state_of_an_earlier_version(is_published, with_store):
    learner = Saved("newer", is_published=is_published)
    store = parameter_store() if with_store and not is_published else None
    process = InProcess(learner, Filters({"": 4} if is_published else None), store=store)
    saved = dict(process.state())
    saved["first"] = saved.pop("newer")
    process.restore(process.converted(saved))
    assert learner.restored == {"newer": [*range(5)]}


def test_arrays_of_a_learner_keep_names_that_its_process_does_not_use():
    learner = Saved("counts", "statistics", "parameters")
    process = InProcess(learner, Filters())
    process.restore(process.converted(process.state()))
    assert learner.restored == {name: [*range(5)] for name in learner.names}
    shared = Saved("statistics", is_published=False)
    assert len(InProcess(shared, Filters()).converted({"statistics": np.arange(5)})) == 1


@pytest.mark.parametrize(
    ("name", "is_published", "store"),
    [("statistics", True, None), ("counts", False, None), ("parameters", False, parameter_store())],
)
def test_a_name_that_the_process_uses_itself_is_refused_in_a_learners_state(
    name, is_published, store
):
    with pytest.raises(ConfigurationError, match=f"Saved: its state has {name}, which the process"):
        InProcess(Saved(name, is_published=is_published), Filters({"": 4}), store=store)


@pytest.mark.parametrize(
    ("filters", "rewards", "neutral"),
    [
        (Filters({"": 4}), Rewards(), "filter_states: false"),
        (Filters(rewards=True), Rewards(), "filter_rewards: false"),
        (Filters(), Rewards(scale=2.0), "reward_scale: 1"),
        (Filters(), Rewards(clips=True), "clip_rewards: false"),
    ],
)
def test_batches_that_cannot_be_filtered_are_refused_by_the_key(filters, rewards, neutral):
    process = InProcess(Setting(), filters, rewards)
    expected = rf"^batches of 'newest' are dict: .* Write {neutral} in the algorithm section"
    with pytest.raises(ConfigurationError, match=expected):
        list(process.steps({"newest": {"reward": np.zeros(3)}}))


def test_rewards_of_transitions_cannot_be_filtered():
    batch = TransitionBatch(*[np.zeros((3, 4), np.float32)] * 7)
    process = InProcess(Setting(), Filters({"": 4}, rewards=True))
    expected = r"^batches of 'newest' are TransitionBatch: .* Write filter_rewards: false in"
    with pytest.raises(ConfigurationError, match=expected):
        list(process.steps({"newest": batch}))


def test_shared_values_that_are_no_numbers_end_learning():
    process = InProcess(Moving(), Filters())
    with pytest.raises(LearningDiverged, match="the parameters that learners share are not finite"):
        process.take(Values(Version(3), 0, np.array([1.0, np.nan], np.float32)))


def test_a_step_of_shared_gradients_counts_when_they_have_moved_the_parameters():
    service, process = parameter_service(), InProcess(Moving(), Filters())
    driven = DrivenLearner(process, service)
    assert process.state()["counts"].tolist() == [0]
    driven.step(drawn())  # of two gradients
    assert process.state()["counts"].tolist() == [1]
    list(process.steps(drawn()))  # none of them arrives
    process.take(Values(Version(3), 0, None))
    assert process.state()["counts"].tolist() == [1]


def test_nothing_is_learnt_of_newest_rollouts_without_a_step():
    learner, batches = Setting(), drawn()
    empty = replace(batches["newest"], valid=np.zeros_like(batches["newest"].valid))
    assert not list(InProcess(learner, Filters()).steps({**batches, "newest": empty}))
    assert learner.batches is None


def falling_process(start):
    """A learner whose learning rate falls to 0 within 1,000 steps."""
    vector = parameter_store().pull().vector
    optimizer = RMSProp(vector.size, RMSPropSettings())
    rate = Remembered(Schedule("learning rate", start, 0.0, 1000.0, "max_global_step"))
    return InProcess(Moving(), Filters(), store=ParameterStore(vector, optimizer, rate))


def test_a_learner_takes_over_what_another_has_learnt_and_keeps_its_own_progress():
    other, own = falling_process(0.1), falling_process(0.5)
    for _ in range(3):
        DrivenLearner(other).step(drawn())
    DrivenLearner(own).step(drawn())
    learnt, before = other.state(), own.state()
    own.adopt(learnt, iteration=7)
    after = own.state()
    kept = {name for name in before if name.startswith("schedule/")}
    assert len(kept) == 2
    for name in kept:
        np.testing.assert_array_equal(after[name], before[name])
    taken = learnt.keys() - kept - {"counts"}
    assert len(taken) >= 2  # the parameters, and the optimiser's slots
    for name in taken:
        np.testing.assert_array_equal(after[name], learnt[name])
    global_t, updates, steps = after["counts"].tolist()
    assert [global_t, updates] == before["counts"].tolist()[:2]
    assert (steps, before["counts"][2], learnt["counts"][2]) == (7, 1, 3)
