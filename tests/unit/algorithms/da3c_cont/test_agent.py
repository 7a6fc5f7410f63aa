"""da3c_cont's agent on a real parameter server in this process."""

import numpy as np
import pytest
from learning_parts import Driven, Gradients, Recorder, Stored, report

from relaax.algorithm_base import NullSaver
from relaax.steps import START

SECTION = {
    "action_size": 1, "state_size": [2], "hidden_layers": [8], "lstm": False, "episode_len": 3,
    "seed": 5,
}  # fmt: skip
FREE = {"sigma": "free", "initial_sigma": 4.0}


class Acting:
    """A batch agent, and what its parameter server was sent."""

    def __init__(self, continuous, changes):
        config = self.config = continuous.Config({**SECTION, **changes})
        self.parameter_server = continuous.ParameterServer(config, NullSaver(), Stored())
        self.bridge = Recorder(self.parameter_server.bridge())
        self.agent = Driven(continuous.make_batch_agent(config, self.bridge, 0, False))
        self.slots = self.agent.open(16)

    def act(self, flags, states, rewards=(1.0,) * 16):
        return self.agent.act(report(self.slots, [flags] * 16, rewards, states))


def states_of(value):
    return np.full((16, 2), value, np.float32)


def test_actions_are_cut_at_the_bounds_and_learnt_from_as_they_were_drawn(continuous, monkeypatch):
    gradients = Gradients(monkeypatch)
    acting = Acting(continuous, {**FREE, "action_low": -1, "action_high": 1})
    actions = acting.act(START, states_of(0))
    assert np.abs(actions).max() == 1
    for _ in range(3):
        acting.act(0, states_of(0))
    recorded = np.concatenate([each.actions[0] for each in gradients.rollouts])
    assert np.abs(recorded).max() > 1
    np.testing.assert_array_equal(actions, np.clip(recorded, -1, 1))


@pytest.mark.parametrize("sigma", [FREE, {"sigma": "state"}])
@pytest.mark.parametrize("shape", [[], [2, 3]])
@pytest.mark.parametrize("lstm", [False, True])
def test_actions_of_any_shape_are_learnt_from(continuous, shape, sigma, lstm):
    section = {"action_size": shape, "lstm": lstm, "action_high": np.zeros(shape).tolist(), **sigma}
    acting = Acting(continuous, section)
    for step in range(5):
        actions = acting.act(START if step == 0 else 0, states_of(step))
        assert actions.shape == (16, *shape)
        assert actions.max() == 0
    assert acting.bridge.gradients


@pytest.mark.parametrize("filters", [False, True])
def test_states_are_filtered_by_what_the_parameter_server_has_merged(
    continuous, filters, monkeypatch
):
    gradients = Gradients(monkeypatch)
    acting = Acting(continuous, {**FREE, "filter_states": filters})
    generator = np.random.default_rng(0)
    acting.act(START, generator.normal(100, 5, (16, 2)).astype(np.float32))
    for _ in range(9):
        acting.act(0, generator.normal(100, 5, (16, 2)).astype(np.float32))
    latest = gradients.rollouts[-1].observations
    assert (np.abs(latest).max() < 5) == filters


@pytest.mark.parametrize("huge", [1e20, 3e38])
def test_a_client_of_huge_numbers_ends_nothing_beside_a_normal_one(continuous, huge, caplog):
    """The first of the 16 environments reports them as states and as rewards."""
    acting = Acting(continuous, {**FREE, "filter_rewards": True})
    generator = np.random.default_rng(0)
    for step in range(30):
        states = generator.normal(100, 5, (16, 2)).astype(np.float32)
        rewards = [1.0] * 16
        if step % 3:
            states[0], rewards[0] = -huge, huge
        actions = acting.act(START if step == 0 else 0, states, rewards)
        assert np.isfinite(actions).all()
    assert len(acting.bridge.gradients) >= 9
    assert "not finite" not in caplog.text
    vector = acting.bridge.get_values().vector
    assert np.isfinite(vector).all()
    network = acting.config.network.manifest.size
    assert vector[network] == vector[network + 10] + 16  # the last states have earned nothing yet
