"""R2D2's targets, losses and priorities beside numpy; its recurrent network is tested elsewhere."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from rollout_samples import random_rollouts

from relaax.assembly.parts import Home
from relaax.learning.networks.parameters_tf import unrolled

ACTIONS, STEPS, DISCOUNT, BETA = 3, 6, 0.9, 0.6

SECTION = {
    "state_size": [2], "action_size": ACTIONS, "network": [{"dense": 5}, {"lstm": 3}], "seed": 4,
    "sequence_len": STEPS, "sequence_overlap": 2, "burn_in": 0, "n_step": 3, "target_every": 2,
    "rewards_gamma": DISCOUNT, "gradient_norm_clipping": None, "learning_rate": 1e-2,
}  # fmt: skip


@pytest.fixture(name="method")
def _method(r2d2):
    return importlib.import_module(f"{r2d2.__name__}.method_tf")


@pytest.fixture(name="learner_of")
def _learner_of(r2d2):
    def make(**keys):
        builder = r2d2.Builder(r2d2.Config({**SECTION, **keys}))
        learner = builder.learner(Home(1, np.random.default_rng(0), None))
        return learner, builder.config

    return make


def h(x):
    """Pohlen et al. 2018, proposition A.2."""
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + 1e-3 * x


def test_the_scale_of_values_is_a_root_that_can_be_inverted(method):
    values = np.array([-1e4, -3, -0.1, 0, 0.1, 3, 1e4], np.float32)
    np.testing.assert_allclose(method.rescaled(values), h(values.astype(float)), rtol=1e-5)
    assert float(method.rescaled(np.float32(3))) == pytest.approx(1.003)
    np.testing.assert_allclose(method.unscaled(method.rescaled(values)), values, rtol=1e-4)


def test_returns_are_over_so_many_steps_or_up_to_an_end_or_a_cut(method):
    """Four steps, the third of which is the end; then three, and the state of a cut."""
    rewards = np.array([[1, 1], [2, 2], [4, 4], [8, 0]], np.float32)
    ends = np.array([[0, 0], [0, 0], [1, 0], [0, 0]], np.float32)
    valid = np.array([[1, 1], [1, 1], [1, 1], [1, 0]], np.float32)
    values = np.array([[16, 16], [32, 32], [64, 64], [128, 128], [256, 256]], np.float32)
    found = method.returns_over(2, rewards, 0.5 * (1 - ends), valid, values)[:, :].numpy()
    assert found[:, 0].tolist() == [1 + 1 + 16, 2 + 2, 4, 8 + 128]
    assert found[:3, 1].tolist() == [1 + 1 + 16, 2 + 2 + 32, 4 + 64]


def sequences(config, likelihoods=(1.0, 2.0, 4.0)):
    dtype = {"state": np.float32} if config.network.is_named else np.float32
    rollouts = random_rollouts(config.network, ACTIONS, len(likelihoods), STEPS, dtype)
    rows = np.broadcast_to(np.float32(likelihoods), rollouts.valid.shape)
    return replace(rollouts, extras={"likelihood": rows})


class Expected:
    """An update beside numpy: of the values that the networks give."""

    def __init__(self, config, policy, target, rollouts, rescales=True):
        self._config, self._rollouts, self._rescales = config, rollouts, rescales
        self._target, self._targets = self.values(target), None
        self._targets = self._targets_of(self.values(policy))

    def values(self, vector):
        found = unrolled(self._config.network, vector, self._rollouts)
        advantages = found["policy"].numpy().astype(float)
        return found["value"].numpy() + advantages - advantages.mean(-1, keepdims=True)

    def _targets_of(self, values):
        """Double Q-learning over three steps, one step after the other."""
        rollouts = self._rollouts
        best = values.argmax(-1)[..., np.newaxis]
        behind = np.take_along_axis(self._target, best, -1)[..., 0]
        if self._rescales:
            grid = np.linspace(-50, 50, 2_000_001)  # h inverted by looking it up
            behind = np.interp(behind, h(grid), grid)
        targets = np.zeros_like(rollouts.rewards, float)
        for start, column in np.ndindex(targets.shape):
            total, factor, row = 0.0, 1.0, start
            while True:
                total += factor * rollouts.rewards[row, column]
                factor *= DISCOUNT * (1 - rollouts.terminated[row, column])
                row += 1
                if row == start + 3 or row == STEPS or not rollouts.valid[row, column]:
                    break
            targets[start, column] = total + factor * behind[row, column]
        return h(targets) if self._rescales else targets

    def errors(self, vector):
        taken = self._rollouts.actions[..., np.newaxis]
        values = np.take_along_axis(self.values(vector)[:-1], taken, -1)[..., 0]
        return self._rollouts.valid * (values - self._targets)

    def loss(self, vector, beta=BETA):
        weights = self._rollouts.extras["likelihood"][0] ** -beta
        return 0.5 * (weights * self.errors(vector) ** 2).sum() / self._rollouts.valid.sum()

    def priorities(self, vector):
        sizes = np.abs(self.errors(vector))
        mean = sizes.sum(0) / self._rollouts.valid.sum(0)
        return 0.9 * sizes.max(0) + 0.1 * mean + 1e-3


@pytest.mark.parametrize("rescales", [True, False])
def test_an_update_is_a_step_down_the_weighed_squares_of_the_errors(learner_of, rescales):
    learner, config = learner_of(rescale_values=rescales)
    before, rollouts = learner.values()["default"], sequences(config)
    target = (before + np.random.default_rng(2).normal(0, 0.3, before.shape)).astype(np.float32)
    learner.restore({**learner.state(), "target": target})
    expected = Expected(config, before, target, rollouts, rescales)
    (step,) = learner.steps({"all": rollouts})
    assert step.terms["loss"] == pytest.approx(expected.loss(before), rel=1e-3)
    np.testing.assert_allclose(step.priorities["all"], expected.priorities(before), rtol=1e-3)
    moved = learner.values()["default"] - before
    for place in np.flatnonzero(np.abs(moved) > 5e-3)[::7]:  # Adam's first step: the slope's sign
        aside = np.zeros_like(before)
        aside[place] = 1e-2
        slope = expected.loss(before + aside) - expected.loss(before - aside)
        assert abs(slope) < 1e-6 or np.sign(slope) == -np.sign(moved[place])


def test_sequences_that_are_drawn_alike_count_alike(learner_of):
    learner, config = learner_of(prioritized=False)
    before, rollouts = learner.values()["default"], sequences(config)
    expected = Expected(config, before, before, rollouts).loss(before, beta=0.0)
    (step,) = learner.steps({"all": rollouts})
    assert (step.terms["loss"], step.priorities) == (pytest.approx(expected, rel=1e-3), {})


def test_the_weights_correct_all_of_the_bias_in_the_end(learner_of):
    learner, config = learner_of(prioritized={"beta_updates": 1}, learning_rate=1e-9)
    before, rollouts = learner.values()["default"], sequences(config)
    expected = Expected(config, before, before, rollouts)
    losses = [next(learner.steps({"all": rollouts})).terms["loss"] for _ in range(2)]
    assert losses == [pytest.approx(expected.loss(before, beta), rel=1e-3) for beta in (BETA, 1.0)]


def test_the_target_is_a_copy_at_each_second_update(learner_of):
    learner, config = learner_of()
    rollouts = sequences(config)
    first = learner.values()["default"]
    for is_copy in (False, True, False):
        before = learner.state()["target"]
        next(learner.steps({"all": rollouts}))
        wanted = learner.values()["default"] if is_copy else before
        np.testing.assert_allclose(learner.state()["target"], wanted, rtol=1e-5)
    assert (learner.state()["target"] != first).any()


def test_a_long_gradient_is_scaled_down(learner_of):
    """Adam forgets the scale: what is seen is the statistics that it keeps."""
    means = []
    for limit in (None, 1e-3):
        learner, config = learner_of(gradient_norm_clipping=limit)
        (step,) = learner.steps({"all": sequences(config)})
        means.append(learner.state()["policy/adam/mean"])
    np.testing.assert_allclose(means[1], means[0] * 1e-3 / step.terms["gradient norm"], rtol=1e-3)


def test_a_forbidden_action_is_not_the_best_behind_a_step(learner_of):
    keys = {"state_size": {"state": [2], "mask": [ACTIONS]}, "action_mask": "mask"}
    learner, config = learner_of(**keys, prioritized=False, rescale_values=False, n_step=1)
    rollouts, losses = sequences(config), []
    for allowed in range(ACTIONS):
        mask = np.zeros((STEPS + 1, 3, ACTIONS), np.uint8)
        mask[..., allowed] = 1
        mask[:-1][np.eye(ACTIONS, dtype=bool)[rollouts.actions]] = 1
        batch = replace(rollouts, observations={**rollouts.observations, "mask": mask})
        learner, _ = learner_of(**keys, prioritized=False, rescale_values=False, n_step=1)
        losses.append(next(learner.steps({"all": batch})).terms["loss"])
    assert len(set(losses)) == ACTIONS
    assert max(losses) < 1e3  # and not the value that stands for those that are forbidden


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"sequence_overlap": STEPS}, "sequence_overlap: 6 steps are not below sequence_len, 6"),
        ({"replay_size": 100}, "replay_size: 100 steps are fewer than the 206 of"),
        ({"network": [{"dense": 8}]}, "network: r2d2 needs a layer lstm"),
        ({"n_step": 7}, "n_step: 7 steps are more than sequence_len, 6"),
        ({"max_global_step": 200}, "learning_starts: 200 steps are not below max_global_step"),
        ({"lstm_size": 8}, "network and lstm_size exclude each other"),
        ({"stream_layers": [8], "dueling": False}, "stream_layers need dueling: true"),
        ({"history_len": 4}, "history_len"),
        ({"learners": {"count": 2}}, "learners"),
        ({"combine_gradients": {"average_of": 2}}, "combine_gradients"),
    ],
)
def test_what_it_cannot_do_is_refused(r2d2, keys, reason):
    with pytest.raises(ValueError, match=reason):
        r2d2.Config({**SECTION, **keys})


def test_the_previous_action_and_reward_may_be_inputs(r2d2):
    network = {"previous": ["action", "reward"], "layers": [{"dense": 8}, {"lstm": 4}]}
    found = r2d2.Config({**SECTION, "network": network}).network
    assert found.encoders["previous/action"].shape == (ACTIONS,)
