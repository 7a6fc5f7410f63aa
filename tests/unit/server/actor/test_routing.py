"""Agents of one environment with clients of their own, each of which has a server here."""

import pytest
import race_environment
from client_servers import start_recording_server, start_server
from race_environment import ParallelRace, TurnRace

from relaax.client import AgentReport, MultiAgentClient
from relaax.client.multi_agent_runner import MultiAgentRunner, wants_action
from relaax.client.pettingzoo_environments import ParallelEnvironment, TurnEnvironment
from relaax.protocol import binary
from relaax.protocol.binary import Welcome
from relaax.server.actor.environments import agents_factory
from relaax.server.actor.routing import CountedEnvironment, Resets, RoutedClient
from relaax.steps import START, TERMINATED

__all__ = ["start_recording_server", "start_server"]  # fixtures


@pytest.fixture(name="play")
def _play(start_recording_server):
    """Plays games; returns what each racer's own server was told: a list for each message."""

    def play(environments, games=1):
        greeting = binary.encode_welcome(Welcome(agents=True))
        servers = [start_recording_server(action=0, greet=lambda number: greeting) for _ in "lr"]
        left, right = (
            MultiAgentClient(server.url, [name], len(environments))
            for server, name in zip(servers, environments[0].agents, strict=True)
        )
        with left, right:
            client = RoutedClient({"left": left, "right": right})
            MultiAgentRunner(environments, client).run(games)
        return [
            [
                list(zip(s.environments.tolist(), s.flags.tolist(), strict=True))
                for s in server.steps
            ]
            for server in servers
        ]

    return play


def _told(steps):
    return list(zip(steps.environments.tolist(), steps.flags.tolist(), strict=True))


def test_each_agent_reports_to_its_own_client_when_it_has_a_turn(play):
    left, right = play([TurnEnvironment(TurnRace(), None)])
    assert left == [[(0, START)], [(0, 0)], [(0, TERMINATED | START)]]
    assert right == [[(0, START)], [(0, 0)], [(0, TERMINATED)]]


def test_the_environments_of_a_ring_report_together(play):
    told = play([ParallelEnvironment(ParallelRace(), None) for _ in range(3)], games=3)
    for each in told:
        assert [len(message) for message in each] == [3, 3, 3]


def test_a_reset_of_any_environment_of_a_ring_is_seen_once_by_each_group():
    resets = Resets()
    readers = [resets.reader() for _ in range(2)]
    ring = [CountedEnvironment(TurnEnvironment(TurnRace(), None), resets) for _ in range(2)]
    assert not any(reader(None) for reader in readers)
    ring[1].restart()
    for reader in readers:
        assert [reader(None), reader(None)] == [True, False]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ("CartPole-v1", None),
        ("race_environment", ParallelEnvironment),
        ("no_such_module", None),
        ("{file}:TurnRace", TurnEnvironment),
        ("{file}:ParallelRace", ParallelEnvironment),
    ],
)
def test_environments_with_several_agents_are_known_by_their_names(env, expected):
    factory = agents_factory(env.format(file=race_environment.__file__), {})
    made = None if factory is None else type(factory(None, None))
    assert made is expected


@pytest.mark.parametrize("make", [TurnEnvironment, ParallelEnvironment])
def test_an_episode_is_cut_off_when_an_agent_has_taken_max_num_steps(make):
    race = TurnRace if make is TurnEnvironment else ParallelRace
    environment = CountedEnvironment(make(race(length=50), None), Resets(), longest=3)
    for _ in range(2):  # the count begins anew
        reports, turns = environment.restart(), 0
        while wanted := [agent for agent, report in reports.items() if wants_action(report)]:
            turns += 1
            reports = environment.apply(dict.fromkeys(wanted, 0))
        assert turns == (5 if make is TurnEnvironment else 3)
        assert all(report.is_truncated and report.final is not None for report in reports.values())


def test_an_agent_whose_first_turn_would_come_at_the_cut_off_has_no_episode(play):
    left, right = play([CountedEnvironment(TurnEnvironment(TurnRace(), None), Resets(), 1)], 2)
    assert left == [[(0, START)]] * 3
    assert right == []


class Joining:
    """An environment whose agents start, end, and start again while others act."""

    agents = ("left", "right")

    def __init__(self, reports):
        self.reports = reports

    def restart(self):
        return {"left": AgentReport([0.0], starts=True)}

    def apply(self, actions):
        return self.reports


def test_the_numbers_of_an_agent_that_is_cut_off_are_those_of_its_last_step():
    reports = {"left": AgentReport([1.0], reward=2.0, episode_info={"won": 0.5})}
    environment = CountedEnvironment(Joining(reports), Resets(), longest=1)
    environment.restart()
    assert environment.apply({"left": 0})["left"].episode_info == {"won": 0.5}


def test_an_agent_that_joins_late_is_left_out_and_one_that_would_start_again_ends():
    reports = {
        "left": AgentReport([1.0], reward=2.0, starts=True, is_terminated=True),
        "right": AgentReport([1.0], starts=True),
    }
    environment = CountedEnvironment(Joining(reports), Resets(), longest=1)
    environment.restart()
    assert environment.apply({"left": 0}) == {"left": AgentReport(reward=2.0, is_terminated=True)}
