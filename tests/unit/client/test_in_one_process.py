"""Programs that play environments, with a server in their process."""

import argparse
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from relaax.client.gymnasium_factory import GymnasiumFactory
from relaax.client.gymnasium_runner import run_command
from relaax.client.run_options import add_run_options, parse_options
from relaax.client.simulator import Step
from relaax.client.simulator_task import play_simulators
from relaax.client.transport import TcpTransport, connecting_by, is_in_one_process
from relaax.protocol import binary
from relaax.protocol.binary import Welcome
from relaax.steps import Evaluation

GYMNASIUM = ("--env", "CartPole-v1", "--count", "3", "--episodes", "4", "--rlx-server")


class Corridor:
    """Ends after one step, with a reward that grows with each episode."""

    name = "corridor"
    observation_space = None
    action_space = None

    def __init__(self, seed):
        self.played = 0

    def restart(self):
        return [0.0]

    def apply(self, action):
        self.played += 1
        return Step(float(self.played), [1.0], True, False)

    def close(self):
        pass


@pytest.fixture(autouse=True)
def _in_one_process():
    with connecting_by(TcpTransport()):
        yield


def play(url, *flags):
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    return play_simulators(parser.parse_args(["--rlx-server", url, *flags]), "corridor", Corridor)


def warnings(caplog):
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_one_simulator_plays_all_episodes_and_a_warning_says_so(server, caplog):
    assert play(server.url, "--count", "3", "--episodes", "5") == 0
    assert server.accepted == 1
    assert [told[1] for told in server.told if told[1] != [0.0]] == [[n] for n in range(1, 6)]
    assert warnings(caplog) == ["one process plays one environment: --count 3 is not followed"]


def test_a_client_of_any_thread_is_in_that_process():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(is_in_one_process).result()


def test_no_warning_where_one_environment_was_asked_for(server, caplog):
    assert play(server.url, "--episodes", "2") == 0
    assert warnings(caplog) == []


def test_an_evaluation_shows_the_returns_of_its_episodes(start_recording_server, capsys):
    welcome = binary.encode_welcome(Welcome(evaluate=Evaluation.DETERMINISTIC))
    server = start_recording_server(greet=lambda number: welcome)
    assert play(server.url, "--episodes", "3", "--evaluate") == 0
    summary = (
        "return of 3 episodes: mean 2.00, standard deviation 0.82, smallest 1.00, largest 3.00"
    )
    assert summary in capsys.readouterr().out


def test_environments_of_gymnasium_share_a_connection(server, caplog):
    options = parse_options([*GYMNASIUM, server.url])
    assert run_command(options, GymnasiumFactory("CartPole-v1", {})) == 0
    assert [hello.environments for hello in server.hellos] == [3]
    assert warnings(caplog) == []


def test_environments_that_cannot_share_a_connection_are_one(server, caplog):
    options = parse_options([*GYMNASIUM, server.url])
    assert run_command(options, GymnasiumFactory("CartPole-v1", {}).__call__) == 0
    assert [hello.environments for hello in server.hellos] == [1]
    assert warnings(caplog) == ["one process plays one environment: --count 3 is not followed"]
