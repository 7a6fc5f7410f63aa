"""Memoire's server and clients as processes of their own; one of them is killed."""

import sys
from pathlib import Path

import pytest
from memoire_entries import entry
from processes import REPOSITORY, Process, free_port, wait_for

from relaax.compat.memoire import ReplayMemoryClient

pytestmark = pytest.mark.integration

SERVER = """
import sys
import numpy as np
from relaax.compat.memoire import ReplayMemoryServer

number = np.zeros([], np.float32)
server = ReplayMemoryServer((number, number, number, number), 100_000, 4)
server.bind(sys.argv[1])
server.rem.rollout_len = 2
print("serves", flush=True)
sys.stdin.read()  # until the test ends it
"""

ACTOR = """
import sys
import numpy as np
from relaax.compat.memoire import ReplayMemoryClient

client = ReplayMemoryClient(req_endpoint=sys.argv[1], uuid=sys.argv[2])
client.push_timeout_s = float(sys.argv[3])
client.get_info()
number = 0
while number < 10_000_000:
    entry = [np.float32(part) for part in (number, 1, 0, -1)]
    client.add_entry(entry, is_term=number % 50 == 49)
    number += 1
"""


class Programs:
    """Programs of a test."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.endpoint = f"tcp://127.0.0.1:{free_port()}"
        self._running: list[Process] = []

    def run(self, name: str, code: str, *arguments: str) -> Process:
        path = self._directory / f"{name}.py"
        path.write_text(f"import sys\nsys.path.insert(0, {str(REPOSITORY)!r})\n{code}")
        command = [sys.executable, str(path), self.endpoint, *arguments]
        process = Process(name, command, self._directory)
        self._running.append(process)
        return process

    def server(self) -> Process:
        process = self.run("server", f"{SERVER.replace('sys.stdin.read()', WAIT)}")
        process.says("serves")
        return process

    def close(self) -> None:
        for process in self._running:
            process.kill_family()
            print(process.name, process.output())


#: A program without input waits, and for ten minutes at most.
WAIT = "import time; time.sleep(600)"


@pytest.fixture(name="programs")
def _programs(tmp_path):
    programs = Programs(tmp_path)
    yield programs
    programs.close()


@pytest.fixture(name="client")
def _client(programs):
    client = ReplayMemoryClient(req_endpoint=programs.endpoint, uuid="test")
    yield client
    client.close(timeout_s=0)


def newest(client: ReplayMemoryClient) -> float:
    """The highest number of the entries that many draws bring, 0 before the first one."""
    fields, _ = client.get_data(512, timeout_s=30)
    return float(fields[0].max())


def require_consecutive(client: ReplayMemoryClient) -> None:
    """Each rollout of two entries has one and the one behind it: none was lost, or came twice."""
    fields, _ = client.get_data(4096, timeout_s=30)
    steps = (fields[0][:, 1] - fields[0][:, 0]).tolist()
    assert set(steps) == {1}


def test_clients_go_on_with_a_server_that_was_killed_and_started_again(programs, client):
    server = programs.server()
    actor = programs.run("actor", ACTOR, "actor", "60")
    wait_for(lambda: newest(client) > 500, "entries")
    client.get_info()
    server.kill()
    programs.server()
    first = newest(client)
    wait_for(lambda: newest(client) > first + 500, "more entries")
    assert actor.is_running()
    require_consecutive(client)
    client.push_data([entry(-2), entry(-1)], is_term=True)


def test_a_server_does_not_mind_a_client_that_is_killed(programs, client):
    programs.server()
    actor = programs.run("actor", ACTOR, "actor", "60")
    wait_for(lambda: newest(client) > 500, "entries")
    actor.kill()
    last = newest(client)
    again = programs.run("actor", ACTOR, "actor", "60")
    wait_for(lambda: newest(client) > last + 500, "more entries of the actor's next life")
    assert again.is_running()
    assert client.get_info().slot_index == 1


def test_an_actor_drops_the_rest_of_an_episode_when_the_server_stays_away(programs, client):
    server = programs.server()
    client.push_timeout_s = 0.0
    client.push_length = 1
    client.push_data([entry(0), entry(1)], is_term=False)
    server.kill()
    for number in range(2, 50):
        client.add_entry(entry(number), is_term=number == 49)
    assert 0 < client.dropped < 48
    programs.server()
    assert client.flush(30)
    client.push_data([entry(100), entry(101)], is_term=True)
    assert newest(client) == 101
