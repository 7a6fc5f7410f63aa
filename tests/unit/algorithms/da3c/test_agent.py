"""The agents on a real parameter server in this process, with a recorder between them."""

import threading

import numpy as np
import pytest

from relaax.algorithm_base import BridgeBase, InvalidState, Metrics, NullSaver, Values, Version
from relaax.learning.slots import SlotPool
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps
from relaax.transitions import read_transitions

SECTION = {
    "action_size": 2, "state_size": [2], "hidden_layers": [8], "episode_len": 3, "seed": 5,
    "rewards_gamma": 0.5, "entropy_beta": 0.0,
}  # fmt: skip


class Stored(Metrics):
    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y))


class Recorder(BridgeBase):
    """Passes calls on and remembers the gradients; may be told to wait, or to fail."""

    def __init__(self, service):
        self.service = service
        self.gradients = []
        self.stored = Stored()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.error = None

    def increment_global_t(self, steps=1):
        return self.service.increment_global_t(steps)

    def apply_gradients(self, gradients, computed_with=None):
        self.service.apply_gradients(gradients, computed_with)

    def get_values(self, known=None):
        return self.service.get_values(known)

    def synchronize(self, gradients, steps, computed_with=None):
        assert self.goes_on.wait(30)
        if self.error is not None:
            raise self.error
        self.gradients.append((gradients, steps, computed_with.number))
        return self.service.synchronize(gradients, steps, computed_with)

    def metrics(self):
        return self.stored


class Restarted:
    """A parameter server of another incarnation."""

    def __init__(self, service):
        self._service = service

    def synchronize(self, gradients, steps, computed_with=None):
        values = self._service.synchronize(gradients, steps)
        return Values(Version(values.version.number, 77), values.global_t, values.vector)


class Driven:
    """A batch agent with what drives it: slots, and flags that are read once."""

    def __init__(self, agent):
        self.agent = agent
        self._slots = SlotPool()
        self._is_running = np.zeros(10_000, np.bool_)

    def open(self, count):
        slots = self._slots.take(count)
        try:
            self.agent.open(slots)
        except MemoryError:
            self._slots.give_back(slots)
            raise
        return slots

    def close_slots(self, slots):
        self.agent.close_slots(slots)
        self._is_running[slots] = False
        self._slots.give_back(slots)

    def act(self, steps):
        slots = steps.environments
        read = read_transitions(slots, steps.flags, steps.rewards, self._is_running[slots])
        truncated = (steps.flags[steps.has_final] & TRUNCATED) != 0
        self._is_running[read.ended] = False
        self._is_running[read.started] = True
        check = self.agent.check
        return self.agent.act(read, check(steps.observations), check(steps.finals)[truncated])

    def __getattr__(self, name):
        return getattr(self.agent, name)


class Learning:
    """Agents, their parameter server, and the rollouts that they learnt from."""

    def __init__(self, da3c, monkeypatch, **changes):
        self.da3c = da3c
        self.config = da3c.Config({**SECTION, **changes})
        self.parameter_server = da3c.ParameterServer(self.config, NullSaver(), Stored())
        self.bridge = Recorder(self.parameter_server.bridge())
        self.rollouts = []
        self._monkeypatch = monkeypatch

    def agent(self):
        """An agent of one environment."""
        agent = self.da3c.Agent(self.config, self.bridge)
        self._watch(agent._batch_agent)
        return agent

    def batch_agent(self, in_background=False):
        agent = self.da3c.make_batch_agent(self.config, self.bridge, 0, in_background)
        self._watch(agent)
        return Driven(agent)

    def vector(self):
        return self.parameter_server.bridge().get_values().vector

    def _watch(self, agent):
        compute = agent._model.gradients
        self._monkeypatch.setattr(
            agent._model,
            "gradients",
            lambda parameters, batch: (self.rollouts.append(batch), compute(parameters, batch))[1],
        )


@pytest.fixture(name="learning_with")
def _learning_with(da3c, monkeypatch):
    return lambda **changes: Learning(da3c, monkeypatch, **changes)


def only(column):
    """The one rollout of a batch as a list."""
    return column[:, 0].tolist()


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
    in_use = agent._batch_agent._learner.policy.parameters.arrays
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


def test_an_unfinished_episode_brings_its_next_state_to_bootstrap_from(learning_with):
    learning = learning_with()
    agent = learning.agent()
    agent.act([0, 0])
    for number in (1, 2, 3):
        agent.reward_and_act(number / 2, [number, 0])
    (rollout,) = learning.rollouts
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 2, 3]
    assert only(rollout.rewards) == [0.5, 1.0, 1.5]
    assert only(rollout.valid) == [1, 1, 1]
    assert only(rollout.terminated) == [0, 0, 0]
    assert only(rollout.starts) == [1, 0, 0, 0]


def test_the_rollout_after_it_goes_on_from_that_state(learning_with):
    learning = learning_with()
    agent = learning.agent()
    agent.act([0, 0])
    for number in range(1, 7):
        agent.reward_and_act(1.0, [number, 0])
    assert learning.rollouts[1].observations[:, 0, 0].tolist() == [3, 4, 5, 6]
    assert only(learning.rollouts[1].starts) == [0, 0, 0, 0]


def test_a_terminated_episode_is_followed_by_the_next_in_the_same_rollout(learning_with):
    learning = learning_with()
    agent = learning.agent()
    agent.act([0, 0])
    assert agent.reward_and_reset(2.0) == 2.0
    agent.act([1, 0])
    agent.reward_and_act(3.0, [2, 0])
    assert agent.reward_and_reset(4.0) == 7.0
    assert not learning.rollouts
    agent.act([7, 0])
    (rollout,) = learning.rollouts
    assert only(rollout.terminated) == [1, 0, 1]
    assert only(rollout.rewards) == [2, 3, 4]
    assert only(rollout.starts) == [1, 1, 0, 1]


def test_an_episode_that_is_given_up_was_cut_off_in_its_last_state(learning_with):
    """The state of the last reward_and_act was the last; the action chosen there never happened."""
    learning = learning_with()
    agent = learning.agent()
    agent.act([0, 0])
    agent.reward_and_act(1.0, [1, 0])
    agent.act([9, 0])
    agent.reward_and_act(5.0, [8, 0])
    (rollout,) = learning.rollouts
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 9, 8]
    assert only(rollout.valid) == [1, 0, 1]
    assert only(rollout.starts) == [1, 0, 1, 0]
    assert rollout.steps == 2
    assert learning.parameter_server.global_t() == 2


def test_clipped_rewards_are_learnt_from_and_whole_ones_reported(learning_with):
    learning = learning_with(clip_rewards=True)
    agent = learning.agent()
    agent.act([0, 0])
    agent.reward_and_act(10.0, [1, 0])
    agent.reward_and_act(-7.0, [2, 0])
    assert agent.reward_and_reset(0.5) == 3.5
    agent.act([0, 0])
    assert only(learning.rollouts[0].rewards) == [1, -1, 0.5]


def test_gradients_longer_than_the_limit_are_cut_to_it(learning_with):
    learning = learning_with(RMSProp={"gradient_norm_clipping": 0.5})
    agent = learning.agent()
    agent.act([0, 0])
    for number in (1, 2, 3):
        agent.reward_and_act(100.0, [number, 0])
    gradient, _, _ = learning.bridge.gradients[0]
    assert np.linalg.norm(gradient) == pytest.approx(0.5, rel=1e-5)


def test_the_same_seed_chooses_the_same_actions(learning_with):
    def actions():
        agent = learning_with().agent()
        chosen = [agent.act([0, 0])]
        return chosen + [agent.reward_and_act(1.0, [n % 3, 1]) for n in range(30)]

    assert actions() == actions()


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


def report(slots, flags, rewards, observations, finals=()):
    return Steps(
        np.array(slots),
        np.array(flags, np.uint8),
        np.array(rewards, float),
        np.array(observations, np.float32).reshape(-1, 2),
        np.array(finals, np.float32).reshape(-1, 2),
    )


def test_environments_fill_their_rollouts_each_in_its_own_time(learning_with):
    learning = learning_with()
    agent = learning.batch_agent()
    first, second = agent.open(2).tolist()
    agent.act(report([first, second], [START, START], [0, 0], [[0, 0], [50, 0]]))
    agent.act(report([first], [0], [1], [[1, 0]]))
    agent.act(report([first, second], [0, 0], [2, 20], [[2, 0], [51, 0]]))
    agent.act(report([first], [0], [3], [[3, 0]]))
    agent.act(report([second], [0], [21], [[52, 0]]))
    agent.act(report([second], [0], [22], [[53, 0]]))
    assert [only(rollout.rewards) for rollout in learning.rollouts] == [[1, 2, 3], [20, 21, 22]]
    assert learning.rollouts[1].observations[:, 0, 0].tolist() == [50, 51, 52, 53]


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


def test_a_truncated_episode_and_the_next_start_come_in_one_message(learning_with):
    learning = learning_with()
    agent = learning.batch_agent()
    slots = agent.open(1)
    agent.act(report(slots, [START], [0], [[0, 0]]))
    agent.act(report(slots, [TRUNCATED | FINAL | START], [4], [[7, 0]], finals=[[1, 0]]))
    agent.act(report(slots, [0], [5], [[8, 0]]))
    (rollout,) = learning.rollouts
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 7, 8]
    assert only(rollout.valid) == [1, 0, 1]
    assert only(rollout.rewards)[0] == 4
    assert only(rollout.starts) == [1, 0, 1, 0]


def test_a_rollout_that_a_truncation_fills_leaves_no_row_to_the_next(learning_with):
    learning = learning_with()
    agent = learning.batch_agent()
    slots = agent.open(1)
    agent.act(report(slots, [START], [0], [[0, 0]]))
    agent.act(report(slots, [0], [1], [[1, 0]]))
    agent.act(report(slots, [0], [2], [[2, 0]]))
    agent.act(report(slots, [TRUNCATED | FINAL | START], [3], [[7, 0]], finals=[[3, 0]]))
    for number in (8, 9, 10):
        agent.act(report(slots, [0], [number], [[number, 0]]))
    first, second = learning.rollouts
    assert first.observations[:, 0, 0].tolist() == [0, 1, 2, 3]
    assert only(first.valid) == [1, 1, 1]
    assert second.observations[:, 0, 0].tolist() == [7, 8, 9, 10]
    assert only(second.valid) == [1, 1, 1]
    assert only(second.starts) == [1, 0, 0, 0]
    assert (first.versions.tolist(), second.versions.tolist()) == ([0], [1])


def test_only_those_that_want_an_action_get_one(learning_with):
    agent = learning_with().batch_agent()
    slots = agent.open(3)
    agent.act(report(slots, [START] * 3, [0] * 3, [[0, 0]] * 3))
    ends = [TERMINATED, 0, TRUNCATED | FINAL]
    assert len(agent.act(report(slots, ends, [1] * 3, [[1, 0]], finals=[[2, 0]]))) == 1
    assert len(agent.act(report(slots[:1], [START], [0], [[0, 0]]))) == 1
    assert len(agent.act(report(slots[:1], [TERMINATED], [0], []))) == 0


def test_the_final_observation_of_a_terminated_episode_is_no_row(learning_with):
    learning = learning_with()
    agent = learning.batch_agent()
    slots = agent.open(1)
    agent.act(report(slots, [START], [0], [[0, 0]]))
    agent.act(report(slots, [TERMINATED | FINAL | START], [4], [[7, 0]], finals=[[1, 0]]))
    agent.act(report(slots, [0], [5], [[8, 0]]))
    agent.act(report(slots, [0], [6], [[9, 0]]))
    assert learning.rollouts[0].observations[:, 0, 0].tolist() == [0, 7, 8, 9]


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


def test_recurrent_state_is_kept_by_environment_and_starts_at_zero_with_each_episode(
    learning_with,
):
    learning = learning_with(lstm=True, lstm_size=4)
    agent = learning.batch_agent()
    slots = agent.open(2)
    agent.act(report(slots, [START] * 2, [0] * 2, [[1, 0], [0, 1]]))
    states = agent._recurrent_state.copy()
    assert np.abs(states).min(axis=(0, 2)).min() > 0
    agent.act(report(slots[1:], [TERMINATED | START], [1], [[0, 1]]))
    np.testing.assert_array_equal(agent._recurrent_state[:, 0], states[:, 0])
    np.testing.assert_allclose(agent._recurrent_state[:, 1], states[:, 1], rtol=1e-5)


def test_a_large_batch_is_cut_into_pieces(learning_with):
    learning = learning_with(learn=False)
    agent = learning.batch_agent()
    agent.agent._most_at_once = 4
    observations = np.random.default_rng(0).normal(size=(11, 2)).astype(np.float32) * 100
    sizes = []
    model_act = agent._model.act
    agent._model.act = lambda p, o, r, n: (sizes.append(len(o)), model_act(p, o, r, n))[1]
    actions = agent.act(report(agent.open(11), [START] * 11, [0] * 11, observations))
    assert actions.shape == (11,)
    assert sizes == [4, 4, 3]


@pytest.fixture(name="background")
def _background(learning_with):
    learning = learning_with(rollouts_per_update=2)
    learning.in_background = learning.batch_agent(in_background=True)
    learning.slots = learning.in_background.open(1)
    learning.in_background.act(report(learning.slots, [START], [0], [[0, 0]]))
    yield learning
    learning.bridge.goes_on.set()
    learning.in_background.close()


def act(learning, times):
    for _ in range(times):
        assert len(learning.in_background.act(report(learning.slots, [0], [1], [[1, 0]]))) == 1


def wait_until(condition):
    deadline = threading.Event()
    for _ in range(3000):
        if condition():
            return
        deadline.wait(0.01)
    raise AssertionError("it did not happen")


def test_in_the_background_acting_does_not_wait_for_learning(background):
    background.bridge.goes_on.clear()
    act(background, 300)
    assert background.bridge.gradients == []
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.bridge.gradients) >= 2)


def test_rollouts_that_nobody_has_time_for_are_dropped_and_counted(background):
    """Of 100 rollouts each is learnt from or counted as dropped; the global step counts all."""

    def dropped():
        stored = background.bridge.stored.values
        return sum(y for name, y in stored if name == "rollouts dropped")

    background.bridge.goes_on.clear()
    act(background, 300)
    background.bridge.goes_on.set()
    wait_until(lambda: dropped() + sum(each.count for each in background.rollouts) == 100)
    assert dropped() > 50
    wait_until(lambda: background.parameter_server.global_t() == 300)


def test_steps_dropped_while_the_parameter_server_was_away_are_not_counted(background):
    """The one that is there again goes on from its last checkpoint, here step 0."""
    background.bridge.goes_on.clear()
    act(background, 3)
    wait_until(lambda: background.rollouts)  # the learner has begun; what follows is dropped
    act(background, 300)
    again = background.da3c.ParameterServer(background.config, NullSaver(), Stored()).bridge()
    background.bridge.service = background.parameter_server_again = Restarted(again)
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.bridge.gradients) >= 3)
    background.in_background.close()
    learnt = sum(each.steps for each in background.rollouts)
    assert again.increment_global_t(0) <= learnt < 150


def test_waiting_rollouts_are_learnt_from_together_up_to_the_limit(background):
    background.bridge.goes_on.clear()
    act(background, 30)
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.rollouts) >= 4)
    assert max(rollouts.count for rollouts in background.rollouts) == 2


def test_rollouts_that_come_at_once_are_learnt_from_up_to_the_limit(learning_with):
    learning = learning_with(rollouts_per_update=4)
    agent = learning.batch_agent(in_background=True)
    slots = agent.open(11)
    states = np.random.default_rng(3).normal(size=(11, 2)).astype(np.float32)
    agent.act(report(slots, [START] * 11, [0] * 11, states))
    for _ in range(3):
        agent.act(report(slots, [0] * 11, [1] * 11, states))
    wait_until(lambda: sum(each.count for each in learning.rollouts) == 11)
    agent.close()
    assert [each.count for each in learning.rollouts] == [4, 4, 3]
    learnt_from = np.concatenate([each.observations[0] for each in learning.rollouts])
    np.testing.assert_array_equal(learnt_from, states)


def test_in_the_background_gradients_are_prepared(learning_with):
    learning = learning_with(rollouts_per_update=4)
    agent = learning.batch_agent(in_background=True)
    agent.warm_up(4)
    traces = len(agent._model._gradients._traces)
    assert traces > 0
    learning.in_background, learning.slots = agent, agent.open(1)
    agent.act(report(learning.slots, [START], [0], [[0, 0]]))
    act(learning, 30)
    wait_until(lambda: len(learning.bridge.gradients) >= 3)
    agent.close()
    assert len(agent._model._gradients._traces) == traces


def test_a_learner_that_closes_begins_no_other_pass(learning_with):
    learning = learning_with(passes=50, policy_clip=0.2)
    agent = learning.batch_agent(in_background=True)
    learning.in_background, learning.slots = agent, agent.open(1)
    agent.act(report(learning.slots, [START], [0], [[0, 0]]))
    learning.bridge.goes_on.clear()
    act(learning, 3)
    wait_until(lambda: learning.rollouts)
    closing = threading.Thread(target=agent.close)
    closing.start()
    learning.bridge.goes_on.set()
    closing.join(30)
    assert not agent._background._thread.is_alive()
    assert len(learning.bridge.gradients) < 50


def test_a_reward_that_is_too_large_to_learn_from_stops_nobody(learning_with, caplog):
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


def test_there_is_no_room_for_more_than_the_memory_holds(learning_with, monkeypatch):
    learning = learning_with()
    agent = learning.batch_agent()
    first = agent.open(2)
    grow = agent._rollouts.grow

    def full(capacity):
        raise MemoryError(f"no room for {capacity}")

    monkeypatch.setattr(agent._rollouts, "grow", full)
    with pytest.raises(MemoryError):
        agent.open(1000)
    monkeypatch.setattr(agent._rollouts, "grow", grow)
    second = agent.open(2)
    assert sorted([*first, *second]) == [0, 1, 2, 3]
    assert len(agent.act(report(second, [START] * 2, [0] * 2, [[0, 0]] * 2))) == 2


def test_an_error_of_the_learner_is_raised_where_it_is_noticed(background):
    background.bridge.error = RuntimeError("the parameter server refused")
    act(background, 3)
    wait_until(lambda: not background.in_background._background._thread.is_alive())
    with pytest.raises(RuntimeError, match="refused"):
        act(background, 3)


def test_a_state_of_another_type_is_refused(learning_with):
    agent = learning_with().agent()
    agent.act(np.zeros(2, np.uint8))
    with pytest.raises(InvalidState, match="a state of float32 came after states of uint8"):
        agent.reward_and_act(1.0, np.zeros(2, np.float32))


def test_the_lag_of_the_policy_is_counted_in_updates(learning_with):
    learning = learning_with()
    agent = learning.agent()
    agent._batch_agent._learner._metrics._interval_s = 0.0
    agent._batch_agent._learner._metrics._due = 0.0
    agent.act([0, 0])
    others = np.zeros_like(learning.vector())
    for _ in range(4):
        learning.parameter_server.bridge().apply_gradients(others)
    for number in (1, 2, 3):
        agent.reward_and_act(1.0, [number, 0])
    assert ("policy lag", 4.0) in learning.bridge.stored.values
    assert ("policy lag max", 4.0) in learning.bridge.stored.values
