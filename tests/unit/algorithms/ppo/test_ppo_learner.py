"""PPO's learner on what its own actors have stored."""

from dataclasses import replace

import numpy as np
import pytest
from numpy_returns import returns_of
from ppo_parts import SMALL, Played

from relaax.learning.filters.statistics import statistics_of, unpacked

KINDS = {
    "discrete": {},
    "several choices": {"action_size": [3, 2]},
    "bits": {"action_size": ..., "action_bits": [2, 2]},
    "continuous": {"action_size": 2, "continuous": True},
    "a sigma for each state": {"action_size": 2, "continuous": True, "sigma": "state"},
    "stacked states": {"history_len": 3},
    "named": {"state_size": {"position": [2], "speed": []}},
    "image": {"state_size": {"camera": [12, 12], "speed": [1]}, "network": {
        "encoders": {"camera": [{"conv2d": {"filters": 2, "kernel": 4, "stride": 4}}]},
        "layers": [{"dense": 8}],
    }, "hidden_layers": ...},
    "mask": {"action_size": 4, "state_size": {"state": [3]}, "action_mask": "allowed"},
    "recurrent": {"lstm": True, "lstm_size": 4},
    "recurrent with a burn-in": {"lstm": True, "lstm_size": 4, "burn_in": 3},
}  # fmt: skip


@pytest.fixture(name="play")
def _play(ppo):
    """Make trainings, which are closed at the end; a key that is ... is left out."""
    made = []

    def play(**keys):
        section = {key: value for key, value in {**SMALL, **keys}.items() if value is not ...}
        made.append(Played(ppo, section))
        return made[-1]

    yield play
    for each in made:
        each.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_learner_computes_the_likelihoods_that_its_actors_stored(play, kind):
    """So nothing is clipped before the first update, whatever is observed, done and remembered."""
    played = play(**KINDS[kind], policy_clip=1e-3, passes=1, minibatches=1)
    for published in range(2):
        while (batch := played.play()).versions.min() < published:
            pass  # with actions of the parameters before
        before = played.learner.vector()
        result = played.learner.step({"rollouts": batch})
        assert result.terms["clipped"] == 0
        after = played.learner.vector()
        assert np.isfinite(after).all()
        assert (after != before).any()
        played.publish()


def test_returns_are_those_of_the_parameters_before_the_passes(play):
    played = play(rewards_gamma=0.9, trace_decay=0.8, filter_states=False)
    rollouts = played.play()
    graphs, parameters = played.graphs, played.parameters()
    experience = graphs.begin(parameters, rollouts)
    values = graphs.evaluated(parameters, rollouts)["value"][..., 0]
    returns = np.stack(
        [
            returns_of(
                rollouts.rewards[:, k], rollouts.terminated[:, k], rollouts.valid[:, k],
                values[:, k].astype(np.float64), 0.9, 0.8,
            )
            for k in range(rollouts.count)
        ],
        axis=1,
    )  # fmt: skip
    steps = rollouts.valid > 0
    found = experience.targets["returns"][0]
    np.testing.assert_allclose(found, returns[steps], rtol=1e-4, atol=1e-5)
    advantages = (returns - values[:-1])[steps]
    expected = (advantages - advantages.mean()) / advantages.std()
    np.testing.assert_allclose(experience.targets["advantages"][0], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(experience.before["value"][0, :, 0], values[:-1][steps])


@pytest.mark.parametrize("keys", [
    {"policy_clip": 0.05}, {"objective": "kl_penalty", "kl_cutoff": 30.0, "kl_target": 1e-3},
    {"policy_clip": 0.05, "value_clip": 0.01},
], ids=["clip", "penalty", "value clip"])  # fmt: skip
def test_the_gradient_is_that_of_the_loss(play, keys):
    """By central differences of the loss in numpy, after some steps have moved the policy."""
    played = play(**keys, entropy_beta=0.1, passes=3, filter_states=False)
    graphs, batch = played.graphs, with_others(played.play())
    experience = graphs.begin(played.parameters(), batch)
    assert 0 < experience.on_policy.mean() < 1
    played.learner.step({"rollouts": batch})
    knobs = replace(played.knobs(), penalty=3.0)
    minibatch = experience.chosen(np.arange(graphs.sequences - 3), graphs.sequences)
    vector = played.learner.vector().astype(np.float64)
    loss = NumpyLoss(played.config, minibatch, knobs)
    found = played.gradient(played.parameters(), minibatch, knobs)
    slope = np.zeros_like(vector)
    for index in range(len(vector)):
        step = np.zeros_like(vector)
        step[index] = 1e-6
        slope[index] = (loss(vector + step) - loss(vector - step)) / 2e-6
    np.testing.assert_allclose(found.vector, slope, rtol=2e-3, atol=2e-5)
    assert found.terms["kl"] == pytest.approx(loss.kl(vector), rel=1e-2)


def with_others(batch):
    """A batch in which each third step executed another action than the policy's."""
    is_own = np.arange(batch.valid.size).reshape(batch.valid.shape) % 3 > 0
    return replace(batch, on_policy=batch.valid * is_own)


def test_where_another_action_was_executed_the_value_alone_learns(play):
    """The policy's head gets no gradient, and the value's the same one."""
    played = play(entropy_beta=0.1, filter_states=False)
    graphs, parameters, batch = played.graphs, played.parameters(), played.play()
    manifest = played.config.network.manifest
    found = []
    for on_policy in (batch.on_policy, np.zeros_like(batch.on_policy)):
        experience = graphs.begin(parameters, replace(batch, on_policy=on_policy))
        minibatch = experience.chosen(np.arange(graphs.sequences), graphs.sequences)
        gradient = played.gradient(parameters, minibatch, played.knobs())
        found.append((manifest.unpack(gradient.vector), gradient.terms))
    (own, _), (other, terms) = found
    for name in ("policy/kernel", "policy/bias"):
        assert own[name].any()
        assert not other[name].any()
    np.testing.assert_allclose(own["value/kernel"], other["value/kernel"], rtol=1e-6)
    assert terms["policy loss"] == terms["entropy"] == terms["clipped"] == 0


class NumpyLoss:
    """The loss of discrete actions in numpy: equations (7) to (9) of the paper.

    Surrogate and entropy are means over the policy's own actions, all else over all valid steps.
    """

    def __init__(self, config, minibatch, knobs):
        self.config, self.settings, self.knobs = config, config.settings, knobs
        which = minibatch.valid[0] > 0
        self.rows = {
            name: np.asarray(part, np.float64)[0][which]
            for name, part in {
                "observations": minibatch.observations,
                **minibatch.extras,
                **minibatch.targets,
                **minibatch.before,
            }.items()
        }
        self.actions = minibatch.actions[0][which]
        self.own = minibatch.on_policy[0][which] > 0

    def outputs(self, vector):
        parts, at = {}, 0
        for spec in self.config.network.manifest.specs:
            parts[spec.name] = vector[at : at + spec.size].reshape(spec.shape)
            at += spec.size
        hidden = self.rows["observations"] @ parts["dense0/kernel"] + parts["dense0/bias"]
        hidden = np.maximum(hidden, 0)
        return [
            hidden @ parts[f"{head}/kernel"] + parts[f"{head}/bias"] for head in ("policy", "value")
        ]

    def kl(self, vector):
        before, after = log_softmax(self.rows["policy"]), log_softmax(self.outputs(vector)[0])
        return (np.exp(before) * (before - after)).sum(axis=1).mean()

    def __call__(self, vector):
        settings, rows = self.settings, self.rows
        logits, values = self.outputs(vector)
        log_p, values = log_softmax(logits), values[:, 0]
        chosen = log_p[np.arange(len(log_p)), self.actions]
        ratios, advantages = np.exp(chosen - rows["log_probability"]), rows["advantages"]
        surrogate = ratios * advantages
        if settings.objective == "clip":
            clipped = np.clip(ratios, 1 - self.knobs.clip, 1 + self.knobs.clip)
            policy_loss = -np.minimum(surrogate, clipped * advantages)[self.own].mean()
        else:
            kl = self.kl(vector)
            excess = max(kl - 2 * settings.kl_target, 0)
            policy_loss = (
                -surrogate[self.own].mean()
                + self.knobs.penalty * kl
                + settings.kl_cutoff * excess**2
            )
        squares = (values - rows["returns"]) ** 2
        if settings.value_clip is not None:
            before = rows["value"][:, 0]
            moved = np.clip(values - before, -settings.value_clip, settings.value_clip)
            squares = np.maximum(squares, (before + moved - rows["returns"]) ** 2)
        entropy = -(np.exp(log_p) * log_p).sum(axis=1)[self.own].mean()
        value_loss = squares.mean() / 2
        return (
            policy_loss + settings.value_loss_weight * value_loss - settings.entropy_beta * entropy
        )


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def test_rollouts_of_any_age_are_learnt_from_and_how_old_they_were_is_said(play):
    played = play()
    batch = played.play()
    for _ in range(12):
        result = played.learner.step({"rollouts": batch})
    assert result.updates
    assert result.terms["policy lag"] == 11


def test_a_batch_without_a_step_is_none_to_learn_from(play):
    played = play()
    batch = played.play()
    before = played.learner.vector()
    result = played.learner.step({"rollouts": replace(batch, valid=np.zeros_like(batch.valid))})
    assert not result.updates
    np.testing.assert_array_equal(played.learner.vector(), before)


def test_a_batch_that_has_moved_the_policy_too_far_is_left(play):
    played = play(passes=50, kl_stop=1e-3, initial_learning_rate=1e-2)
    result = played.learner.step({"rollouts": played.play()})
    assert 1 <= result.terms["passes"] < 50


@pytest.mark.parametrize("kind", KINDS)
def test_the_divergence_is_that_of_all_steps_after_the_last_update(play, kind):
    keys = {"filter_states": False, **KINDS[kind]}
    played = play(**keys, passes=1, minibatches=3, initial_learning_rate=1e-2)
    graphs, batch = played.graphs, played.play()
    experience = graphs.begin(played.parameters(), batch)
    assert graphs.divergence(played.parameters(), experience) == pytest.approx(0, abs=1e-6)
    found = played.learner.step({"rollouts": batch}).terms["kl"]
    pieces = list(experience.pieces(graphs.sequences))
    after, knobs = played.parameters(), played.knobs()
    kls = [played.gradient(after, each, knobs).terms["kl"] for each in pieces]
    expected = np.average(kls, weights=[each.valid.sum() for each in pieces])
    assert len(pieces) > 1
    assert sum(each.valid.sum() for each in pieces) == experience.valid.sum()
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-7)
    assert found > 1e-6


def test_a_pass_that_has_moved_the_policy_too_far_is_the_last(play):
    played = play(passes=5, minibatches=1, kl_stop=1e-4, initial_learning_rate=1e-2)
    result = played.learner.step({"rollouts": played.play()})
    assert result.terms["passes"] == 1
    assert result.terms["kl"] > 1e-4


@pytest.mark.parametrize("keys", [{}, {"passes": 1, "minibatches": 1}], ids=["some", "one"])
def test_the_penalty_follows_the_divergence_after_the_last_update(play, keys):
    played = play(objective="kl_penalty", kl_target=1e-6, initial_learning_rate=1e-2, **keys)
    result = played.learner.step({"rollouts": played.play()})
    assert result.terms["kl"] > 2e-6
    assert played.knobs().penalty == 1.5


def test_the_learning_rate_is_annealed_over_the_steps_that_were_drawn(play):
    played = play(max_global_step=1e3, passes=1, minibatches=1)
    first, batch = played.learner.state(), played.play()
    steps, *others = first["counts"]
    assert steps == 0
    for steps in (0, 500):
        counts = np.array([steps, *others])
        played.learner.restore({**first, "counts": counts})
        played.learner.step({"rollouts": batch})
        after = played.learner.state()
        assert after["counts"][0] == steps + batch.steps
        # The first update of Adam moves parameters by the learning rate.
        moved = np.abs(after["parameters"] - first["parameters"])[: played.size]
        assert moved.max() == pytest.approx(3e-4 * (1 - steps / 1e3), rel=1e-2)


def test_the_statistics_of_states_are_of_each_step_once_and_are_published(play):
    played = play(filter_rewards=True)
    batch = played.play()
    played.learner.step({"rollouts": batch})
    states, rewards = np.split(played.learner.vector()[-20:], [14])
    steps = batch.valid > 0
    expected = statistics_of(batch.observations[:-1][steps])
    np.testing.assert_allclose(unpacked(states), unpacked(expected), rtol=1e-9)
    expected = statistics_of(batch.rewards[steps][:, np.newaxis])
    np.testing.assert_allclose(unpacked(rewards), unpacked(expected), rtol=1e-9)


def test_of_stacked_states_each_is_counted_once(play):
    played = play(history_len=3)
    batch = played.play()
    played.learner.step({"rollouts": batch})
    newest = batch.observations[:-1][batch.valid > 0][:, -3:]
    found = unpacked(played.learner.vector()[-14:])
    np.testing.assert_allclose(found, unpacked(statistics_of(newest)), rtol=1e-9)


def test_rewards_are_scaled_and_then_cut(play):
    keys = {"filter_states": False, "rewards_gamma": 1e-9, "passes": 1, "minibatches": 1}
    played = play(reward_scale=2.0, clip_rewards=True, **keys)
    batch = played.play()
    values = played.graphs.evaluated(played.parameters(), batch)["value"][..., 0]
    steps = batch.valid > 0
    errors = np.clip(2 * batch.rewards, -1, 1)[steps] - values[:-1][steps]
    found = played.learner.step({"rollouts": batch}).terms["value loss"]
    assert found == pytest.approx(np.mean(errors**2) / 2, rel=1e-4)


@pytest.mark.parametrize("kind", ["discrete", "recurrent"])
def test_a_learner_goes_on_from_its_state_to_the_bit(play, kind):
    keys = {**KINDS[kind], "learning_rate_schedule": "kl", "filter_rewards": True}
    played, restored = play(**keys), play(**keys)
    first, second = played.play(), played.play()
    played.learner.step({"rollouts": first})
    # As many rows, so that its generator has drawn as much; all else is different.
    restored.learner.step({"rollouts": replace(first, rewards=1 - first.rewards)})
    restored.learner.restore(played.learner.state())
    for each in (played.learner, restored.learner):
        each.step({"rollouts": second})
    for name, value in played.learner.state().items():
        np.testing.assert_array_equal(restored.learner.state()[name], value, err_msg=name)


def test_a_checkpoint_that_counts_dropped_rollouts_is_gone_on_from(play):
    played, restored = (play(**KINDS["discrete"]) for _ in range(2))
    played.learner.step({"rollouts": played.play()})
    state = played.learner.state()
    before = {**state, "counts": np.append(state["counts"], 7)}
    restored.learner.restore(restored.learner.converted(before))
    assert restored.learner.state()["counts"].tolist() == state["counts"].tolist()


def test_a_learner_that_goes_on_keeps_what_it_has_adapted_and_takes_the_rest_as_configured(play):
    played = play(**KINDS["discrete"], learning_rate_schedule="kl")
    for _ in range(3):
        played.learner.step({"rollouts": played.play()})
    restored = play(**KINDS["discrete"], learning_rate_schedule="kl", policy_clip=0.1)
    restored.learner.restore(played.learner.state())
    assert restored.knobs().learning_rate == played.knobs().learning_rate != 3e-4
    assert restored.knobs().clip == 0.1


def test_a_larger_max_global_step_does_not_raise_the_learning_rate(play, caplog):
    played = play(**KINDS["discrete"], max_global_step=40)
    played.learner.step({"rollouts": played.play()})
    reached = played.learner.state()["counts"][0]
    restored = play(**KINDS["discrete"], max_global_step=1e6)
    restored.learner.restore(played.learner.state())
    left = 3e-4 * (1 - reached / 40)
    assert f"the learning rate at step {reached} goes on with {left:g}" in caplog.text
