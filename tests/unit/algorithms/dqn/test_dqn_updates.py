"""DQN's losses and updates, beside numpy and rows of the papers."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from driven_learner import DrivenLearner
from transition_batches import (
    COUNT,
    LEAST_PRIORITY,
    batch_of,
    hidden_outputs,
    require_state_to_the_bit,
    slope_of,
    stepped,
)

ACTIONS = 3
SECTION = {"state_size": [3], "action_size": ACTIONS, "hidden_layers": [4], "seed": 3}
ATOMS = {"atoms": 5, "low": -2.0, "high": 2.0}


@pytest.fixture(name="losses", scope="module")
def _losses(dqn_module):
    return dqn_module("method_tf")


class TestLosses:
    def test_huber_is_a_parabola_up_to_1_and_a_line_behind_it(self, losses):
        found = losses.huber(np.array([0.5, -1.0, -3.0], np.float32))
        np.testing.assert_allclose(found, [0.125, 0.5, 2.5])

    def test_a_return_between_two_atoms_gives_to_both(self, losses):
        """Support -1, 0, 1: a certain return of 0, a reward of 0.25."""
        found = project(losses, [[0.0, 1.0, 0.0]], [-1.0, 0.0, 1.0], [0.25], [1.0])
        np.testing.assert_allclose(found, [[0.0, 0.75, 0.25]], atol=1e-6)

    def test_a_return_beyond_an_end_stays_there(self, losses):
        found = project(losses, [[0.5, 0.0, 0.5]], [-1.0, 0.0, 1.0], [0.5], [1.0])
        np.testing.assert_allclose(found, [[0.25, 0.25, 0.5]], atol=1e-6)

    def test_behind_the_end_of_an_episode_only_the_reward_counts(self, losses):
        found = project(losses, [[0.2, 0.3, 0.5]], [-1.0, 0.0, 1.0], [-0.5], [0.0])
        np.testing.assert_allclose(found, [[0.5, 0.5, 0.0]], atol=1e-6)

    def test_a_projection_is_that_of_the_papers_algorithm(self, losses):
        random = np.random.default_rng(1)
        probabilities = random.dirichlet(np.ones(51), size=20)
        support = np.linspace(-10, 10, 51)
        rewards, discounts = random.normal(size=20) * 5, random.uniform(0, 1, size=20)
        found = project(losses, probabilities, support, rewards, discounts)
        expected = algorithm_1(probabilities, support, rewards, discounts)
        np.testing.assert_allclose(found, expected, atol=2e-5)

    def test_a_divergence_is_0_for_equal_distributions(self, losses):
        targets = np.array([[0.25, 0.75, 0.0]], np.float32)
        entropies = losses.cross_entropy(targets, np.log(targets + 1e-30))
        np.testing.assert_allclose(losses.divergence(targets, entropies), [0.0], atol=1e-6)


def project(losses, *arrays):
    return losses.projected(*(np.array(array, np.float32) for array in arrays)).numpy()


def algorithm_1(probabilities, support, rewards, discounts):
    """Bellemare et al. 2017, algorithm 1, atom by atom."""
    low, high, step = support[0], support[-1], support[1] - support[0]
    projected = np.zeros_like(probabilities)
    for row, atom in itertools.product(range(len(rewards)), range(len(support))):
        moved = np.clip(rewards[row] + discounts[row] * support[atom], low, high)
        place = np.clip((moved - low) / step, 0, len(support) - 1)
        below, above = int(np.floor(place)), int(np.ceil(place))
        if below == above:
            projected[row, below] += probabilities[row, atom]
        else:
            projected[row, below] += probabilities[row, atom] * (above - place)
            projected[row, above] += probabilities[row, atom] * (place - below)
    return projected


def dqn_batch(seed):
    random = np.random.default_rng(seed)
    actions = random.integers(ACTIONS, size=COUNT).astype(np.int32)
    return batch_of(random, actions, np.zeros(COUNT, np.float32))


class Numpy:
    """What the network's outputs mean, float64."""

    def __init__(self, config):
        self.config = config
        self.actions = config.actions

    def logits(self, vector, observations):
        outputs = hidden_outputs(self.config.network, vector, observations)
        advantages = outputs["policy"].reshape(COUNT, ACTIONS, -1)
        if not self.actions.is_dueling:
            return advantages
        centred = advantages - advantages.mean(axis=1, keepdims=True)
        return outputs["value"][:, np.newaxis, :] + centred

    def values(self, vector, observations):
        logits = self.logits(vector, observations)
        if self.actions.atoms == 1:
            return logits[:, :, 0]
        return softmax(logits) @ np.linspace(-2, 2, 5)

    def loss(self, vector, targets, batch):
        logits = self.logits(vector, batch.observations)[np.arange(COUNT), batch.actions]
        if self.actions.atoms == 1:
            errors = np.abs(logits[:, 0] - targets)
            losses = np.where(errors < 1, errors**2 / 2, errors - 0.5)
        else:
            losses = -(targets * np.log(softmax(logits))).sum(axis=1)
        return np.mean(losses * batch.weights)


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("is_double", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("is_dueling", [False, True], ids=["plain", "dueling"])
@pytest.mark.parametrize("is_distributional", [False, True], ids=["mean", "C51"])
def test_an_update_moves_the_network_as_numpy_does(dqn, is_double, is_dueling, is_distributional):
    section = {**SECTION, "double": is_double, "dueling": is_dueling, "prioritized": True}
    section |= {"stream_layers": [4]} if is_dueling else {}
    section |= {"distributional": ATOMS} if is_distributional else {}
    config = dqn.Config(section)
    learner = DrivenLearner(dqn.make_learner(config, 3))
    random = np.random.default_rng(5)
    state = dict(learner.state())
    # A target that differs, so that double learning does.
    state["target"] = random.normal(size=state["target"].shape).astype(np.float32)
    learner.restore(state)
    batch = dqn_batch(0)
    result = learner.step({"all": batch})
    terms, errors = result.terms, result.priorities["all"] - LEAST_PRIORITY

    ours, before = Numpy(config), {name: a.astype(np.float64) for name, a in state.items()}
    chosen_by = before["policy" if is_double else "target"]
    best = ours.values(chosen_by, batch.next_observations).argmax(axis=1)
    behind = ours.logits(before["target"], batch.next_observations)[np.arange(COUNT), best]
    if is_distributional:
        support = np.linspace(-2, 2, 5)
        targets = algorithm_1(softmax(behind), support, batch.rewards, batch.discounts)
    else:
        targets = batch.rewards + batch.discounts * behind[:, 0]

    def loss(vector):
        return ours.loss(vector, targets, batch)

    slope = slope_of(loss, before["policy"])
    slope *= min(1.0, 10.0 / np.linalg.norm(slope))
    after = learner.state()
    np.testing.assert_allclose(terms["loss"], loss(before["policy"]), rtol=1e-4)
    np.testing.assert_allclose(after["policy/adam/mean"], 0.1 * slope, rtol=1e-3, atol=2e-6)
    np.testing.assert_allclose(after["policy"], stepped(before["policy"], slope, 1e-3), atol=3e-6)
    taken = ours.logits(before["policy"], batch.observations)[np.arange(COUNT), batch.actions]
    if is_distributional:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(targets > 0, targets * np.log(targets / softmax(taken)), 0)
        np.testing.assert_allclose(errors, ratios.sum(axis=1), rtol=1e-3, atol=1e-5)
    else:
        np.testing.assert_allclose(errors, np.abs(taken[:, 0] - targets), rtol=1e-4)


def test_long_gradients_are_scaled_down(dqn):
    config = dqn.Config({**SECTION, "gradient_norm_clipping": 1e-3})
    learner = DrivenLearner(dqn.make_learner(config, 3))
    assert learner.step({"all": dqn_batch(0)}).terms["gradient norm"] > 1e-3
    mean = learner.state()["policy/adam/mean"]
    assert np.linalg.norm(mean) == pytest.approx(0.1 * 1e-3, rel=1e-4)


def test_the_target_is_a_copy_after_some_updates(dqn):
    learner = DrivenLearner(dqn.make_learner(dqn.Config({**SECTION, "target_every": 2}), 3))
    first = learner.state()["target"]
    learner.step({"all": dqn_batch(0)})
    np.testing.assert_array_equal(learner.state()["target"], first)
    learner.step({"all": dqn_batch(1)})
    state = learner.state()
    np.testing.assert_allclose(state["target"], state["policy"], atol=1e-6)


def test_a_learner_goes_on_from_its_state_to_the_bit(dqn):
    config = dqn.Config({**SECTION, "target_every": 4, "prioritized": True})
    batches = [dqn_batch(number) for number in range(6)]
    require_state_to_the_bit(lambda seed: dqn.make_learner(config, seed), batches)


def test_priorities_are_errors_where_transitions_are_drawn_by_them(dqn):
    plain = DrivenLearner(dqn.make_learner(dqn.Config(SECTION), 3))
    assert plain.step({"all": dqn_batch(0)}).priorities == {}
    learner = DrivenLearner(dqn.make_learner(dqn.Config({**SECTION, "prioritized": True}), 3))
    state, batch = learner.state(), dqn_batch(0)
    ours, rows = Numpy(dqn.Config(SECTION)), np.arange(COUNT)
    best = ours.values(state["policy"], batch.next_observations).argmax(axis=1)
    behind = ours.values(state["target"], batch.next_observations)[rows, best]
    taken = ours.values(state["policy"], batch.observations)[rows, batch.actions]
    errors = np.abs(taken - batch.rewards - batch.discounts * behind)
    np.testing.assert_allclose(
        learner.step({"all": batch}).priorities["all"], errors + 1e-3, rtol=1e-4
    )


class TestSettings:
    def test_streams_need_a_dueling_network(self, dqn):
        with pytest.raises(ValueError, match="stream_layers need dueling: true"):
            dqn.Config({**SECTION, "stream_layers": [4]})

    def test_an_exponent_needs_several_rungs(self, dqn):
        with pytest.raises(ValueError, match="exponent: no effect without rungs above 1"):
            dqn.Config({**SECTION, "exploration": {"exponent": 3.0}})
        section = {**SECTION, "exploration": {"exponent": 3.0, "rungs": 4}}
        assert dqn.Config(section).settings.exploration.exponent == 3.0

    def test_the_range_of_returns_is_one(self, dqn):
        with pytest.raises(ValueError, match="low must be below high"):
            dqn.Config({**SECTION, "distributional": {"low": 1.0, "high": 1.0}})

    def test_a_recurrent_network_is_refused(self, dqn):
        section = {"state_size": [3], "action_size": 2, "network": [{"lstm": 8}]}
        with pytest.raises(ValueError, match="single transitions are learnt from"):
            dqn.Config(section)


@pytest.mark.parametrize("history", [1, 2])
@pytest.mark.parametrize("is_double", [False, True], ids=["single", "double"])
def test_the_best_action_behind_a_step_is_one_that_is_allowed(dqn, is_double, history):
    section = {**SECTION, "double": is_double, "prioritized": True, "history_len": history}
    section |= {"state_size": {"seen": [3]}, "action_mask": "legal"}
    section |= {"network": {"encoders": {"seen": []}, "layers": [{"dense": 4}]}}
    del section["hidden_layers"]
    config = dqn.Config(section)
    learner, batch = DrivenLearner(dqn.make_learner(config, 3)), dqn_batch(0)
    allowed = np.uint8([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]])
    everything, nothing = np.ones_like(allowed), np.zeros_like(allowed)
    before = [nothing] * (history - 1)  # of older states, which count for nothing

    def named(seen, mask):
        return {
            "seen": np.tile(seen, (1, history)),
            "legal": np.concatenate([*before, mask], axis=1),
        }

    state, rows = dict(learner.state()), np.arange(COUNT)
    state["target"] = np.random.default_rng(5).normal(size=state["target"].shape).astype("f4")
    learner.restore(state)
    masked = replace(
        batch,
        observations=named(batch.observations, everything),
        next_observations=named(batch.next_observations, allowed),
    )

    def values(name, observations):
        seen = {"seen": observations["seen"]}
        return hidden_outputs(config.network, state[name], seen)["policy"]

    following = values("policy" if is_double else "target", masked.next_observations)
    best = np.where(allowed, following, -np.inf).argmax(axis=1)
    behind = values("target", masked.next_observations)[rows, best]
    taken = values("policy", masked.observations)[rows, batch.actions]
    errors = np.abs(taken - batch.rewards - batch.discounts * behind)
    found = learner.step({"all": masked}).priorities["all"] - LEAST_PRIORITY
    np.testing.assert_allclose(found, errors, rtol=1e-3, atol=1e-5)
