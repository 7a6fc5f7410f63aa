from typing import Any

import gymnasium
import numpy as np
import pytest
from client_servers import HandMadeServer
from clock import Clock

from relaax.client import Backoff, Client
from relaax.client.gymnasium_actions import UnusableAction
from relaax.client.gymnasium_runner import GymnasiumRunner
from relaax.client.gymnasium_tasks import GymnasiumSimulator
from relaax.client.simulator import EpisodeSummary, RunObserver, RunOutcome
from relaax.client.simulator_runner import SimulatorRunner
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode
from relaax.steps import START, Steps


class Corridor(gymnasium.Env):
    """Counts its steps; is over after ``length`` of them, in the way that ``ending`` says."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 3, ending: str = "terminated") -> None:
        self.length = length
        self.ending = ending
        self.seeds: list[int | None] = []
        self.place = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.seeds.append(seed)
        self.place = 0
        return np.float32([0]), {}

    def step(self, action: int) -> Any:
        self.place += 1
        is_over = self.place == self.length
        observation = np.float32([self.place])
        ended = (is_over and self.ending == "terminated", is_over and self.ending == "truncated")
        return observation, self.place / 2, *ended, {}


class Notes(RunObserver):
    def __init__(self) -> None:
        self.events: list[str] = []
        self.summaries: list[EpisodeSummary] = []
        self.steps = 0

    def on_connected(self) -> None:
        self.events.append("connected")

    def on_disconnected(self) -> None:
        self.events.append("disconnected")

    def on_step(self) -> None:
        self.steps += 1

    def on_episode(self, summary: EpisodeSummary) -> None:
        self.events.append("episode")
        self.summaries.append(summary)


def without_metrics(messages: list[list[Any]]) -> list[list[Any]]:
    return [message for message in messages if message[0] != "scalar_metric"]


def test_terminated_episodes_end_with_a_reset(start_server) -> None:
    server = start_server()
    notes = Notes()
    with Client(server.url, protocol=1) as client:
        result = GymnasiumRunner(Corridor(), client, observer=notes).run(episodes=2)
    assert result.outcome is RunOutcome.FINISHED
    episode = [
        ["act", "[0.0]"],
        ["reward_and_act", 0.5, "[1.0]"],
        ["reward_and_act", 1.0, "[2.0]"],
        ["reward_and_reset", 1.5],
    ]
    assert without_metrics(server.messages) == episode * 2
    assert notes.events == ["connected", "episode", "episode"]
    assert [(s.episode_return, s.length) for s in notes.summaries] == [(3.0, 3)] * 2
    assert notes.steps == 6


def test_truncated_episodes_end_with_their_last_state_and_the_next_act(start_server) -> None:
    server = start_server()
    with Client(server.url, protocol=1) as client:
        GymnasiumRunner(Corridor(2, "truncated"), client).run(episodes=2)
    episode = [["act", "[0.0]"], ["reward_and_act", 0.5, "[1.0]"], ["reward_and_act", 1.0, "[2.0]"]]
    assert without_metrics(server.messages) == episode * 2


class Timed(Corridor):
    """Each step takes a quarter of a second of ``clock``."""

    def __init__(self, clock: Clock, length: int = 3) -> None:
        super().__init__(length)
        self.clock = clock

    def step(self, action: int) -> Any:
        self.clock.now += 0.25
        return super().step(action)


def play_timed(server: HandMadeServer, length: int, episodes: int) -> list[list[Any]]:
    """Play; return the metrics that the server was sent."""
    clock = Clock()
    with Client(server.url, protocol=1) as client:
        simulator = GymnasiumSimulator(Timed(clock, length), "Timed", None)
        SimulatorRunner(simulator, client, clock=clock).run(episodes)
        client.init(0)  # answered after the metrics were received
    return [message for message in server.messages if message[0] == "scalar_metric"]


@pytest.mark.parametrize(("length", "episodes"), [(3, 5), (15, 1)])
def test_the_latency_of_actions_is_reported_once_a_second_however_long_an_episode_is(
    start_server, length: int, episodes: int
) -> None:
    metrics = play_timed(start_server(), length, episodes)  # 3.75 s
    assert [name for _, name, _ in metrics] == ["act latency"] * 3
    assert all(latency > 0 for _, _, latency in metrics)


def test_episodes_without_sends_have_no_latency(start_server) -> None:
    assert play_timed(start_server(), length=1, episodes=12) == []


def test_only_the_first_reset_is_seeded(start_server) -> None:
    environment = Corridor()
    with Client(start_server().url, protocol=1) as client:
        GymnasiumRunner(environment, client, seed=7).run(episodes=3)
    assert environment.seeds == [7, None, None]


def test_a_failure_restarts_the_episode(start_server, close, usual_answer) -> None:
    server = start_server(
        lambda e: close if (e.connection, e.number) == (1, 3) else usual_answer(e)
    )
    notes = Notes()
    client = Client(server.url, protocol=1, reconnect=Backoff(), wait=lambda _: None)
    with client:
        GymnasiumRunner(Corridor(), client, observer=notes).run(episodes=1)
    assert server.verbs[:4] == ["act", "reward_and_act", "reward_and_act", "act"]
    assert server.exchanges[3].state == [0.0]
    assert notes.events == ["connected", "disconnected", "connected", "episode"]
    assert notes.summaries[0].length == 3


def test_a_server_that_is_lost_ends_the_run(start_server, close, usual_answer) -> None:
    server = start_server(lambda e: close if e.connection > 1 or e.number > 9 else usual_answer(e))
    client = Client(server.url, protocol=1, reconnect=Backoff(attempts=2), wait=lambda _: None)
    result = GymnasiumRunner(Corridor(), client).run()
    assert result.outcome is RunOutcome.SERVER_LOST
    assert "gave up after 2 attempts" in result.message


def refusing_steps(allowed: int):
    """What answers so many steps that start no episode, and refuses those that follow."""
    taken = 0

    def reply(number: int, steps: Steps) -> bytes | None:
        nonlocal taken
        if steps.flags[0] & START:
            return None
        taken += 1
        return None if taken <= allowed else binary.encode_error(ErrorCode.MISMATCH, "too few")

    return reply


def test_a_state_that_is_refused_in_the_first_episode_ends_the_run(server) -> None:
    server.reply = refusing_steps(0)
    result = GymnasiumRunner(Corridor(), Client(server.url, reconnect=Backoff())).run()
    assert (result.outcome, server.accepted) == (RunOutcome.UNUSABLE, 1)
    assert "too few" in result.message


def test_after_a_whole_episode_refused_states_are_counted(server) -> None:
    server.reply = refusing_steps(3)
    client = Client(server.url, reconnect=Backoff(attempts=2), wait=lambda _: None)
    result = GymnasiumRunner(Corridor(), client).run()
    assert (result.outcome, server.accepted) == (RunOutcome.UNUSABLE, 3)
    assert "gave up after 2 attempts" in result.message


def test_a_server_that_closes_after_every_start_is_tried_less_and_less_often(
    start_server, close
) -> None:
    server = start_server(lambda e: close if e.number == 2 else ["act", 1])
    pauses: list[float] = []
    backoff = Backoff(attempts=3, jitter=0)
    client = Client(server.url, reconnect=backoff, wait=pauses.append, protocol=1)
    result = GymnasiumRunner(Corridor(), client).run()
    assert (result.outcome, server.accepted) == (RunOutcome.SERVER_LOST, 3)
    assert pauses == [0.5, 1.0]


def test_a_server_that_was_never_there_is_another_result(unused_url) -> None:
    result = GymnasiumRunner(Corridor(), Client(unused_url)).run()
    assert result.outcome is RunOutcome.UNREACHED
    assert "cannot connect" in result.message


def test_an_action_that_does_not_fit_is_a_clear_error(start_server) -> None:
    with (
        Client(start_server(lambda _: ["act", 2]).url, protocol=1) as client,
        pytest.raises(UnusableAction, match="is from 0 to 1, the server sent 2"),
    ):
        GymnasiumRunner(Corridor(), client).run()
