"""The agent on a real parameter server in this process, with a recorder between them."""

import numpy as np
import pytest

from relaax.algorithm_base import BridgeBase, NullMetrics, NullSaver

SECTION = {
    "action_size": 2, "state_size": [2], "hidden_layers": [8], "episode_len": 3, "seed": 5,
    "rewards_gamma": 0.5, "entropy_beta": 0.0,
}  # fmt: skip


class Recorder(BridgeBase):
    """Passes calls on and remembers the gradients."""

    def __init__(self, service):
        self.service = service
        self.gradients = []

    def increment_global_t(self, steps=1):
        return self.service.increment_global_t(steps)

    def apply_gradients(self, gradients, computed_with=None):
        self.service.apply_gradients(gradients, computed_with)

    def get_values(self, known=None):
        return self.service.get_values(known)

    def synchronize(self, gradients, steps, computed_with=None):
        self.gradients.append((gradients, steps, computed_with.number))
        return self.service.synchronize(gradients, steps, computed_with)

    def metrics(self):
        return NullMetrics()


class Learner:
    """An agent, its parameter server, and the batches that it learnt from."""

    def __init__(self, da3c, monkeypatch, **changes):
        config = da3c.Config({**SECTION, **changes})
        self.parameter_server = da3c.ParameterServer(config, NullSaver(), NullMetrics())
        self.bridge = Recorder(self.parameter_server.bridge())
        self.agent = da3c.Agent(config, self.bridge)
        self.batches = []
        compute = self.agent._model.gradients
        monkeypatch.setattr(
            self.agent._model,
            "gradients",
            lambda parameters, batch: (self.batches.append(batch), compute(parameters, batch))[1],
        )

    def value_of(self, *observation):
        model = self.agent._model
        parameters = model.unpack(self.parameter_server.bridge().get_values().vector)
        batch = np.array([observation], np.float32)
        noise = np.zeros((1, 2), np.float32)
        return model.act(parameters, batch, model.initial_recurrent_state(), noise).values[0]


@pytest.fixture(name="learner")
def _learner(da3c, monkeypatch):
    return lambda **changes: Learner(da3c, monkeypatch, **changes)


def test_a_full_rollout_is_learnt_from_and_the_new_values_are_used(learner):
    learning = learner()
    before = learning.parameter_server.bridge().get_values().vector
    learning.agent.act([0, 0])
    for number in (1, 2, 3):
        learning.agent.reward_and_act(1.0, [number, 0])
    assert [(steps, version) for _, steps, version in learning.bridge.gradients] == [(3, 0)]
    assert learning.parameter_server.global_t() == 3
    after = learning.parameter_server.bridge().get_values().vector
    assert not np.array_equal(before, after)
    in_use = [
        learning.agent._parameters[spec.name] for spec in learning.agent._model.manifest.specs
    ]
    np.testing.assert_array_equal(np.concatenate([np.ravel(t) for t in in_use]), after)


def test_an_unfinished_episode_bootstraps_from_its_next_state(learner):
    learning = learner()
    value = learning.value_of(3, 0)
    learning.agent.act([0, 0])
    for number in (1, 2, 3):
        learning.agent.reward_and_act(1.0, [number, 0])
    batch = learning.batches[0]
    assert batch.observations.tolist() == [[0, 0], [1, 0], [2, 0]]
    np.testing.assert_allclose(
        batch.returns, [1.75 + value / 8, 1.5 + value / 4, 1 + value / 2], rtol=1e-5
    )


def test_a_terminated_episode_earns_nothing_more(learner):
    learning = learner()
    learning.agent.act([0, 0])
    learning.agent.reward_and_act(1.0, [1, 0])
    learning.agent.reward_and_act(1.0, [2, 0])
    learning.agent.reward_and_reset(1.0)
    np.testing.assert_allclose(learning.batches[0].returns, [1.75, 1.5, 1.0])


def test_a_truncated_episode_bootstraps_from_its_last_state(learner):
    """The state of the last reward_and_act was the last; the action chosen there never happened."""
    learning = learner()
    value = learning.value_of(2, 0)
    learning.agent.act([0, 0])
    learning.agent.reward_and_act(1.0, [1, 0])
    learning.agent.reward_and_act(1.0, [2, 0])
    learning.agent.act([9, 0])
    learning.agent.reward_and_act(5.0, [8, 0])
    batch = learning.batches[0]
    assert batch.observations.tolist() == [[0, 0], [1, 0], [9, 0]]
    assert batch.continues.tolist() == [0, 1, 0]
    np.testing.assert_allclose(batch.returns[:2], [1.5 + value / 4, 1 + value / 2], rtol=1e-5)


def test_a_rollout_goes_on_across_episodes(learner):
    learning = learner()
    learning.agent.act([0, 0])
    assert learning.agent.reward_and_reset(2.0) == 2.0
    learning.agent.act([1, 0])
    learning.agent.reward_and_act(3.0, [2, 0])
    assert learning.agent.reward_and_reset(4.0) == 7.0
    batch = learning.batches[0]
    assert batch.continues.tolist() == [0, 0, 1]
    np.testing.assert_allclose(batch.returns, [2.0, 5.0, 4.0])


def test_clipped_rewards_are_learnt_from_and_whole_ones_reported(learner):
    learning = learner(clip_rewards=True)
    learning.agent.act([0, 0])
    learning.agent.reward_and_act(10.0, [1, 0])
    learning.agent.reward_and_act(-7.0, [2, 0])
    assert learning.agent.reward_and_reset(0.5) == 3.5
    np.testing.assert_allclose(learning.batches[0].returns, [1 - 0.5 + 0.125, -1 + 0.25, 0.5])


def test_gradients_longer_than_the_limit_are_cut_to_it(learner):
    section = {"RMSProp": {"gradient_norm_clipping": 0.5}}
    learning = learner(**section)
    learning.agent.act([0, 0])
    for number in (1, 2, 3):
        learning.agent.reward_and_act(100.0, [number, 0])
    gradient, _, _ = learning.bridge.gradients[0]
    assert np.linalg.norm(gradient) == pytest.approx(0.5, rel=1e-5)


def test_the_same_seed_chooses_the_same_actions(learner):
    def actions():
        agent = learner().agent
        chosen = [agent.act([0, 0])]
        return chosen + [agent.reward_and_act(1.0, [n % 3, 1]) for n in range(30)]

    assert actions() == actions()


def test_recurrent_state_starts_at_zero_with_each_episode(learner):
    learning = learner(lstm=True, lstm_size=4)
    learning.agent.act([0, 0])
    learning.agent.reward_and_act(1.0, [1, 0])
    assert np.abs(learning.agent._recurrent_state).max() > 0
    learning.agent.reward_and_reset(1.0)
    learning.agent.act([0, 0])
    assert np.abs(learning.agent._pending.recurrent_state).max() == 0


def test_nothing_is_learnt_after_the_training(learner):
    learning = learner(max_global_step=3)
    learning.agent.act([0, 0])
    for number in (1, 2, 3):
        learning.agent.reward_and_act(1.0, [number, 0])
    assert learning.parameter_server.training_is_over()
    learning.parameter_server.stop_training()
    values = learning.parameter_server.bridge().get_values().vector
    for number in (1, 2, 3):
        learning.agent.reward_and_act(1.0, [number, 0])
    assert learning.parameter_server.global_t() == 3
    np.testing.assert_array_equal(values, learning.parameter_server.bridge().get_values().vector)
