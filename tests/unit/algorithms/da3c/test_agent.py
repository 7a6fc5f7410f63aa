"""DA3C's agents on a real parameter server in this process, with a recorder between them."""

import numpy as np
import pytest
from learning_parts import Driven, Gradients, Recorder, Stored, graphs_of, only, report, wait_until

from relaax.algorithm_base import NullSaver
from relaax.steps import START, TERMINATED

SECTION = {
    "action_size": 2, "state_size": [2], "hidden_layers": [8], "episode_len": 3, "seed": 5,
    "rewards_gamma": 0.5, "entropy_beta": 0.0,
}  # fmt: skip


class Learning:
    """Agents, their parameter server, and the rollouts that they learnt from."""

    def __init__(self, da3c, monkeypatch, **changes):
        self.da3c = da3c
        self.config = da3c.Config({**SECTION, **changes})
        self.parameter_server = da3c.ParameterServer(self.config, NullSaver(), Stored())
        self.bridge = Recorder(self.parameter_server.bridge())
        da3c.prepare_to_fork()
        self.gradients = Gradients(monkeypatch)
        self.rollouts = self.gradients.rollouts

    def agent(self):
        """An agent of one environment."""
        return self.da3c.Agent(self.config, self.bridge)

    def batch_agent(self, in_background=False):
        return Driven(self.da3c.make_batch_agent(self.config, self.bridge, 0, in_background))

    def vector(self):
        return self.parameter_server.bridge().get_values().vector


@pytest.fixture(name="learning_with")
def _learning_with(da3c, monkeypatch):
    return lambda **changes: Learning(da3c, monkeypatch, **changes)


def act(learning, times):
    for _ in range(times):
        assert len(learning.in_background.act(report(learning.slots, [0], [1], [[1, 0]]))) == 1


def test_full_rollouts_wait_for_others_and_are_divided_among_minibatches(learning_with):
    """Four rollouts of three steps, two of them in each of the two updates of a pass."""
    learning = learning_with(
        least_rollouts_per_update=4, minibatches=2, passes=2, policy_clip=0.2,
        wait_for_learning="always",
    )  # fmt: skip
    agent = learning.agent()
    agent.act([0, 0])
    for number in range(1, 12):
        agent.reward_and_act(1.0, [number, 0])
    assert learning.rollouts == []
    agent.reward_and_act(1.0, [12, 0])
    assert [rollouts.count for rollouts in learning.rollouts] == [2, 2, 2, 2]
    assert [steps for _, steps, _ in learning.bridge.gradients] == [12, 0, 0, 0]


def test_a_full_rollout_is_learnt_from_and_the_new_values_are_used(learning_with):
    learning = learning_with()
    agent = learning.agent()
    before = learning.vector()
    agent.act([0, 0])
    for number in (1, 2, 3):
        agent.reward_and_act(1.0, [number, 0])
    assert [(steps, version) for _, steps, version in learning.bridge.gradients] == [(3, 0)]
    assert learning.parameter_server.global_t() == 3
    after = learning.vector()
    assert not np.array_equal(before, after)
    for number in (4, 5, 6):
        agent.reward_and_act(1.0, [number, 0])
    in_use = learning.gradients.parameters[1].arrays
    np.testing.assert_array_equal(np.concatenate([a.ravel() for a in in_use.values()]), after)


def test_each_pass_is_an_update_and_the_steps_count_once(learning_with):
    learning = learning_with(passes=3, policy_clip=0.2)
    agent = learning.agent()
    agent.act([0, 0])
    for number in (1, 2, 3):
        agent.reward_and_act(1.0, [number, 0])
    assert [(steps, version) for _, steps, version in learning.bridge.gradients] == [
        (3, 0),
        (0, 1),
        (0, 2),
    ]
    assert learning.parameter_server.global_t() == 3
    first, second, third = learning.rollouts
    assert first is second is third


def test_clipped_rewards_are_learnt_from_and_whole_ones_reported(learning_with):
    learning = learning_with(clip_rewards=True)
    agent = learning.agent()
    agent.act([0, 0])
    agent.reward_and_act(10.0, [1, 0])
    agent.reward_and_act(-7.0, [2, 0])
    assert agent.reward_and_reset(0.5) == 3.5
    agent.act([0, 0])
    assert only(learning.rollouts[0].rewards) == [1, -1, 0.5]


@pytest.mark.parametrize("optimizer", ["RMSProp", "Adam", "SGD"])
def test_gradients_longer_than_the_limit_are_cut_to_it(learning_with, optimizer):
    learning = learning_with(**{optimizer: {"gradient_norm_clipping": 0.5}})
    agent = learning.agent()
    agent.act([0, 0])
    for number in (1, 2, 3):
        agent.reward_and_act(100.0, [number, 0])
    gradient, _, _ = learning.bridge.gradients[0]
    assert np.linalg.norm(gradient) == pytest.approx(0.5, rel=1e-5)


def test_the_same_seed_chooses_the_same_actions(learning_with):
    def actions(seed):
        learning = learning_with()
        agent = learning.da3c.Agent(learning.config, learning.bridge, seed=seed)
        chosen = [agent.act([0, 0])]
        return chosen + [agent.reward_and_act(1.0, [n % 3, 1]) for n in range(30)]

    assert actions(1) == actions(1)
    assert actions(1) != actions(2)


def test_nothing_is_learnt_after_the_training(learning_with):
    learning = learning_with(max_global_step=3)
    agent = learning.agent()
    agent.act([0, 0])
    for number in (1, 2, 3):
        agent.reward_and_act(1.0, [number, 0])
    assert learning.parameter_server.training_is_over()
    learning.parameter_server.stop_training()
    values = learning.vector()
    for number in (1, 2, 3):
        agent.reward_and_act(1.0, [number, 0])
    assert learning.parameter_server.global_t() == 3
    np.testing.assert_array_equal(values, learning.vector())


def test_without_learning_the_parameters_stay_as_they_are(learning_with):
    learning = learning_with(learn=False)
    agent = learning.agent()
    actions = {agent.act([0, 0])} | {agent.reward_and_act(1.0, [n, 0]) for n in range(20)}
    assert actions <= {0, 1}
    assert (learning.bridge.gradients, learning.parameter_server.global_t()) == ([], 0)


def test_rollouts_that_are_full_at_once_make_one_update(learning_with):
    learning = learning_with()
    agent = learning.batch_agent()
    slots = agent.open(3)
    agent.act(report(slots, [START] * 3, [0] * 3, [[n, 0] for n in range(3)]))
    for step in range(1, 4):
        agent.act(report(slots, [0] * 3, [step] * 3, [[n, step] for n in range(3)]))
    (rollouts,) = learning.rollouts
    assert rollouts.count == 3
    assert rollouts.observations[:, 2].tolist() == [[2, 0], [2, 1], [2, 2], [2, 3]]
    assert len(learning.bridge.gradients) == 1
    assert learning.parameter_server.global_t() == 9


def test_a_slot_that_is_used_again_remembers_nothing(learning_with):
    learning = learning_with(lstm=True, lstm_size=4)
    agent = learning.batch_agent()
    slots = agent.open(1)
    agent.act(report(slots, [START], [0], [[1, 1]]))
    agent.act(report(slots, [0], [1], [[1, 2]]))
    agent.close_slots(slots)
    assert agent.open(1).tolist() == slots.tolist()
    agent.act(report(slots, [START], [0], [[5, 0]]))
    for number in (1, 2, 3):
        agent.act(report(slots, [0], [number], [[number, 0]]))
    (rollout,) = learning.rollouts
    assert rollout.observations[:, 0, 0].tolist() == [5, 1, 2, 3]
    assert not rollout.recurrent_state.any()


def test_recurrent_state_is_kept_by_environment_and_starts_at_zero_with_each_episode(learning_with):
    learning = learning_with(lstm=True, lstm_size=4)
    agent = learning.batch_agent()
    slots = agent.open(2)
    agent.act(report(slots, [START] * 2, [0] * 2, [[1, 0], [0, 1]]))
    for _ in range(2):
        agent.act(report(slots, [0] * 2, [1] * 2, [[1, 0], [0, 1]]))
    agent.act(report(slots, [0, TERMINATED | START], [1] * 2, [[1, 0], [0, 1]]))
    for _ in range(3):
        agent.act(report(slots, [0] * 2, [1] * 2, [[1, 0], [0, 1]]))
    first, second, goes_on, starts = (
        each.recurrent_state[:, k] for each in learning.rollouts for k in range(each.count)
    )
    for state in (first, second, starts):
        assert not state.any()
    assert np.abs(goes_on).min() > 0


@pytest.mark.xla
def test_in_the_background_gradients_are_prepared(learning_with, monkeypatch):
    learning = learning_with(rollouts_per_update=4)
    graphs = graphs_of(monkeypatch)
    agent = learning.batch_agent(in_background=True)
    agent.agent.warm_up(4)
    prepared = graphs()
    assert prepared > 0
    learning.in_background, learning.slots = agent, agent.open(1)
    agent.act(report(learning.slots, [START], [0], [[0, 0]]))
    act(learning, 30)
    wait_until(lambda: len(learning.bridge.gradients) >= 3)
    agent.close()
    assert graphs() == prepared


def test_a_reward_that_is_too_large_to_learn_from_stops_no_agent(learning_with, caplog):
    learning = learning_with()
    agent = learning.agent()
    before = learning.vector()
    agent.act([0, 0])
    for reward in (1.0, float(np.finfo(np.float32).max), 1.0):
        agent.reward_and_act(reward, [1, 0])
    assert "their gradient is not finite; their rewards lie between 1 and 3.4" in caplog.text
    np.testing.assert_array_equal(learning.vector(), before)
    assert learning.parameter_server.global_t() == 3
    for _ in range(3):
        agent.reward_and_act(1.0, [1, 0])
    assert not np.array_equal(learning.vector(), before)
