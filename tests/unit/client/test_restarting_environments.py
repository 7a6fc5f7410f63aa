"""An environment of several that fails is made again, and the others play on."""

import gymnasium
import numpy as np
import pytest
from clock import Clock
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client import VectorClient
from relaax.client.restarting_environments import RestartingEnvironments
from relaax.client.restarts import (
    MOST_RESTARTS,
    WITHIN_S,
    EnvironmentHangs,
    FailedTooOften,
    Restarts,
)
from relaax.client.simulator import RunObserver, RunOutcome
from relaax.client.vector_runner import VectorRunner
from relaax.steps import EXECUTED, START, TERMINATED

NAN, INF = float("nan"), float("inf")


class Corridor(gymnasium.Env):
    """Counts its steps, which are over after four; in step ``at`` it does what ``fails`` does."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fails=None, at=2, clock=None):
        self.fails, self.at, self.clock = fails, at, clock
        self.seeds = []
        self.is_closed = False

    def reset(self, *, seed=None, options=None):
        self.place = 0
        self.seeds.append(seed)
        return np.float32([0]), {}

    def step(self, action):
        self.place += 1
        if self.clock is not None:
            self.clock.now += 1.0
        if self.fails is not None and self.place == self.at:
            return self.fails()
        return np.float32([self.place]), float(self.place), self.place == 4, False, {}

    def close(self):
        self.is_closed = True


def raises(error):
    def fail():
        raise error

    return fail


def returns(observation, reward):
    return lambda: (np.float32([observation]), reward, False, False, {})


class Notes(RunObserver):
    may_exit = False

    def __init__(self):
        self.messages, self.lost, self.returns = [], [], []

    def on_restart(self, message):
        self.messages.append(message)

    def on_lost(self, message):
        self.lost.append(message)

    def on_episode(self, summary):
        self.returns.append((summary.episode_return, summary.length))


def environments_of(*makers, notes=None, clock=None):
    """Environments of which each maker makes one after the other; and their clock."""
    clock = clock or Clock()

    def wait(seconds):
        clock.now += seconds

    sync = SyncVectorEnv(
        [lambda maker=maker: maker(clock) for maker in makers],
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    names = [f"environment {number} (Corridor)" for number in range(len(makers))]
    return RestartingEnvironments(
        sync, names, lambda index, again: 100 * index + again, notes, clock, wait
    )


def one_after_the_other(*environments):
    left = iter(environments)
    return lambda clock: next(left)


FAULTS = {
    "an exception": (raises(OSError("the game is gone")), "OSError: the game is gone"),
    "its exit": (raises(SystemExit(3)), "SystemExit: 3"),
    "an interrupted hang": (raises(EnvironmentHangs("late")), "EnvironmentHangs: late"),
    "a state of NaN": (returns(NAN, 1.0), "ValueError: the state[0] is nan, it must be finite"),
    "an infinite state": (returns(INF, 1.0), "ValueError: the state[0] is inf, it must be finite"),
    "a reward of NaN": (returns(2, NAN), "ValueError: the reward is nan, "),
    "no reward": (
        returns(2, None),
        "TypeError: environment 0 (Corridor): the reward is None, it must be a number",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_episode_of_a_failed_environment_is_given_up_and_the_others_play_on(
    server, capsys, fault
):
    fails, why = FAULTS[fault]
    notes, faulty = Notes(), Corridor(fails)
    environments = environments_of(
        one_after_the_other(faulty, Corridor()), lambda clock: Corridor(clock=clock), notes=notes
    )
    with VectorClient(server.url, 2) as client:
        result = VectorRunner(environments, client, observer=notes).run(episodes=2)
    assert result.outcome is RunOutcome.FINISHED
    numbers = [steps.environments.tolist() for steps in server.steps]
    assert numbers == [[0, 1], [0, 1], [1], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]
    assert [flags for flags, *_ in server.told][2:5] == [[0], [START, 0], [0, TERMINATED | START]]
    assert faulty.is_closed
    assert notes.returns == [(10.0, 4), (10.0, 4)]
    (message,) = notes.messages
    assert message.startswith(f"environment 0 (Corridor) failed ({why}")
    assert "restart 1;" in message
    assert [(each.name, each.y) for each in server.metrics] == [("environment restarts", 1.0)]


def test_an_environment_that_is_made_again_gets_another_seed():
    again = Corridor()
    environments = environments_of(lambda clock: Corridor(), one_after_the_other(
        Corridor(raises(ValueError("x"))), again
    ))  # fmt: skip
    environments.reset(seed=[5, 6])
    for _ in range(2):
        environments.step(np.zeros(2, np.int64))
    assert again.seeds == []
    environments.reset()
    assert again.seeds == [101]


def test_an_environment_that_cannot_start_its_next_episode_has_ended_the_one_before(server):
    def cannot_start(clock):
        environment = Corridor(clock=clock)
        resets = iter([(np.float32([0]), {})])
        environment.reset = lambda **_: (setattr(environment, "place", 0), next(resets))[1]
        return environment

    environments = environments_of(one_after_the_other(cannot_start(None), Corridor()))
    with VectorClient(server.url, 1) as client:
        VectorRunner(environments, client).run(episodes=2)
    flags = [flags for flags, *_ in server.told]
    assert flags[4:6] == [[TERMINATED], [START]]


def test_an_environment_that_fails_again_and_again_ends_the_run_with_its_error(server):
    environments = environments_of(lambda clock: Corridor(raises(ValueError("no memory"))))
    with VectorClient(server.url, 1) as client, pytest.raises(FailedTooOften) as failed:
        VectorRunner(environments, client).run()
    assert str(failed.value) == (
        f"environment 0 (Corridor) failed, and was made again {MOST_RESTARTS} times within "
        f"{WITHIN_S:g} s before: ValueError: no memory"
    )


def test_an_environment_of_several_that_fails_again_and_again_is_lost_and_the_others_play_on(
    server, caplog
):
    notes, clock = Notes(), Clock()
    environments = environments_of(
        lambda _: Corridor(raises(ValueError("no memory")), at=2),
        lambda _: Corridor(clock=clock),
        notes=notes,
        clock=clock,
    )
    with VectorClient(server.url, 2) as client:
        runner = VectorRunner(environments, client, observer=notes)
        assert runner.run(episodes=20).outcome is RunOutcome.FINISHED
        made = len(notes.messages)
        assert runner.run(episodes=20).outcome is RunOutcome.FINISHED
    (message,) = notes.lost
    assert message in caplog.messages
    assert message == (
        f"environment 0 (Corridor) failed, and was made again {MOST_RESTARTS} times within "
        f"{WITHIN_S:g} s before: ValueError: no memory. It is not made again: it is lost, and the "
        "others play on"
    )
    assert len(notes.messages) == made == MOST_RESTARTS
    assert server.steps[-1].environments.tolist() == [1]
    assert notes.returns == [(10.0, 4)] * 40


def test_the_last_lost_environment_ends_the_run_with_its_error(server):
    environments = environments_of(
        *[lambda _, at=at: Corridor(raises(ValueError(f"after {at}")), at=at) for at in (2, 3)]
    )
    with VectorClient(server.url, 2) as client, pytest.raises(FailedTooOften, match="after"):
        VectorRunner(environments, client).run()


def test_a_failure_before_the_first_step_is_raised_at_once():
    environments = environments_of(lambda clock: Corridor(raises(ValueError("no key")), at=1))
    environments.reset()
    with pytest.raises(ValueError, match="no key"):
        environments.step(np.zeros(1, np.int64))


def test_the_pauses_grow_and_old_failures_are_forgotten():
    clock = Clock()
    restarts = Restarts(clock)
    pauses = [restarts.next_pause_s("x", "why") for _ in range(MOST_RESTARTS)]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0]
    with pytest.raises(FailedTooOften):
        restarts.next_pause_s("x", "why")
    clock.now += WITHIN_S
    assert restarts.next_pause_s("x", "why") == 0.5
    assert restarts.count == MOST_RESTARTS + 1


class Cautious(Corridor):
    """Executes action 0, whatever it is given."""

    def step(self, action):
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, {"executed_action": 0}


def test_executed_actions_are_reported_also_while_others_are_absent(server):
    clock = Clock()
    environments = environments_of(
        lambda _: Cautious(clock=clock),
        one_after_the_other(Corridor(raises(ValueError("x"))), Corridor()),
        clock=clock,
    )
    with VectorClient(server.url, 2) as client:
        VectorRunner(environments, client).run(episodes=1)
    assert server.steps[2].environments.tolist() == [0]
    assert server.steps[3].environments.tolist() == [0, 1]
    for steps in server.steps[2:4]:
        assert (steps.flags[0] & EXECUTED, list(steps.executed)) == (EXECUTED, [0])
    assert server.steps[3].flags[1] == START
