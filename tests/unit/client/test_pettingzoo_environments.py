"""Environments of PettingZoo's two interfaces, played against a server that records."""

import json

import numpy as np
import pytest
import race_environment
from gymnasium import spaces
from race_environment import ParallelRace, Race, TurnRace

from relaax.client import MultiAgentClient
from relaax.client.multi_agent_runner import MultiAgentRunner, wants_action
from relaax.client.pettingzoo_environments import (
    ParallelEnvironment,
    PettingZooFactory,
    TurnEnvironment,
)
from relaax.errors import ConfigurationError
from relaax.protocol import binary
from relaax.protocol.binary import Welcome
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED

CUT = TRUNCATED | FINAL


@pytest.fixture(name="play")
def _play(start_recording_server):
    """Plays games, with the action 0, and returns what was reported: a list for each message."""

    def play(environments, games=1):
        server = start_recording_server(
            action=0, greet=lambda number: binary.encode_welcome(Welcome(agents=True))
        )
        agents = environments[0].agents
        with MultiAgentClient(server.url, agents, len(environments)) as client:
            result = MultiAgentRunner(environments, client).run(games)
        assert result.message == f"{games} episodes are over"
        columns = ((s.environments, s.flags, s.rewards) for s in server.steps)
        return [
            [tuple(row) for row in zip(*(column.tolist() for column in each), strict=True)]
            for each in columns
        ], server.steps

    return play


def test_in_turns_a_reward_is_the_sum_since_the_last_turn_and_one_leaves_before_the_other(play):
    told, _ = play([TurnEnvironment(TurnRace(), None)])
    assert told == [
        [(0, START, 0.0)],
        [(1, START, 0.0)],
        [(0, 0, -0.25)],
        [(1, 0, -0.25)],
        [(0, TERMINATED | START, 0.75), (1, TERMINATED, 1.0)],
    ]


def test_at_the_same_time_all_report_in_one_message(play):
    told, _ = play([ParallelEnvironment(ParallelRace(), None) for _ in range(2)], games=2)
    ends = TERMINATED | START
    assert told == [
        [(number, flags, reward) for number in range(4)]
        for flags, reward in ((START, 0.0), (0, 0.0), (ends, 1.0))
    ]


@pytest.mark.parametrize("make", [TurnEnvironment, ParallelEnvironment])
def test_an_agent_that_is_cut_off_brings_what_it_saw_last_with_a_mask_that_allows_something(
    play, make
):
    race = TurnRace if make is TurnEnvironment else ParallelRace
    _, steps = play([make(race(length=9, most_moves=3), None)])
    cut_off = [each for each in steps if (each.flags & TRUNCATED).any()]
    assert [flag & CUT for each in cut_off for flag in each.flags.tolist()] == [CUT, CUT]
    for each in cut_off:
        assert each.finals["observation"].tolist() == [[3.0]] * len(each.flags)
        assert each.finals["action_mask"].tolist() == [[1, 1]] * len(each.flags)


def test_masks_are_sent_with_the_observations(play):
    _, steps = play([TurnEnvironment(TurnRace(), None)])
    assert [each.observations["action_mask"].tolist() for each in steps[:3]] == [
        [[1, 1]], [[1, 1]], [[1, 0]],
    ]  # fmt: skip


def test_the_module_says_which_interface_there_is_unless_it_is_chosen(monkeypatch):
    made = PettingZooFactory("race_environment", {"length": 3})(None)
    assert isinstance(made, ParallelEnvironment)
    assert made.agents == ["left", "right"]
    chosen = PettingZooFactory("race_environment", {}, "aec")(None)
    assert isinstance(chosen, TurnEnvironment)
    monkeypatch.delattr(race_environment, "env")
    with pytest.raises(ConfigurationError, match="no interface of aec; those that it has: para"):
        PettingZooFactory("race_environment", {}, "aec")(None)
    with pytest.raises(ConfigurationError, match="no module no_such_race can be imported"):
        PettingZooFactory("no_such_race", {})(None)
    with pytest.raises(ConfigurationError, match="no interface of parallel or aec"):
        PettingZooFactory("classic/no-such-race-v1", {})(None)


def test_agents_with_different_spaces_are_refused_by_name():
    class Uneven(Race):
        def action_space(self, agent):
            return spaces.Discrete(2 + (agent == "right"))

    with pytest.raises(ConfigurationError, match=r"left and right act in Discrete\(2\) and Discr"):
        TurnEnvironment(Uneven(), None).spaces_of(["left", "right"])


def test_an_environment_without_a_list_of_agents_is_refused():
    class Nameless(Race):
        possible_agents = None

    with pytest.raises(ConfigurationError, match="no possible_agents"):
        TurnEnvironment(Nameless(), None)


def test_a_game_in_which_no_agent_ever_has_a_turn_is_refused(play):
    class Over(TurnRace):
        def reset(self, seed=None):
            super().reset(seed)
            self.agents = []

    with pytest.raises(ConfigurationError, match="a game begins, and no agent has a turn"):
        play([TurnEnvironment(Over(), None)])


def test_spaces_are_announced_for_each_agent():
    environment = TurnEnvironment(TurnRace(), None)
    spaces = environment.spaces_of(environment.agents)
    assert spaces.action_space == {"type": "Discrete", "n": 2}
    assert set(spaces.observation_space["spaces"]) == {"observation", "action_mask"}
    json.dumps(spaces.observation_space)


@pytest.mark.parametrize(
    ("env_id", "agents", "moves"),
    [("classic/tictactoe-v3", 2, 9), ("mpe2.simple_spread_v3", 3, 75)],
)
def test_environments_of_both_packages_are_played_to_their_end(env_id, agents, moves):
    """By the first allowed action each time."""
    environment, played = PettingZooFactory(env_id, {})(1), 0
    reports = environment.restart()
    while acting := {name: each for name, each in reports.items() if wants_action(each)}:
        reports = environment.apply({name: first_of(each) for name, each in acting.items()})
        played += len(acting)
    environment.close()
    assert len(environment.agents) == agents
    assert 5 <= played <= moves


def first_of(report):
    seen = report.observation
    return int(np.argmax(seen["action_mask"])) if isinstance(seen, dict) else 0
