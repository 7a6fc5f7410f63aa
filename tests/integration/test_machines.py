"""One YAML file and many machines, each in a network namespace of its own."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from networks import NEEDS_NAMESPACES, Machine, Network, network
from processes import SMALL_DA3C, SMALL_SAC, Process, Training, wait_for

pytestmark = [pytest.mark.integration, NEEDS_NAMESPACES]

#: How long a machine is cut off.
CUT_S = 20.0

#: Longer than gRPC takes to find out, so that the stream between shards breaks off, too.
STREAM_CUT_S = 35.0

#: What was on the way when a machine was cut off has been counted, and the progress line shows it.
ON_THE_WAY_S = 5.0

PER_SERVER = 2

OPERATORS = "0.0.0.0:7100"


@pytest.fixture(name="machines")
def _machines(training: Training) -> Iterator[Network]:
    training.rlx_server_url = "0.0.0.0:7001"
    training.access = {"insecure": True}
    training.workers = 1
    with network(training) as machines:
        yield machines


def start_rlx_servers(machines: Network, env: str) -> list[tuple[Machine, Process]]:
    """Start two, and environments of each on a machine of their own; return what plays where."""
    simulators = machines.add()
    started = []
    for _ in range(2):
        machine = machines.add()
        machine.start("relaax-rlx-server").says("serving at ")
        url = f"{machine.address}:7001"
        started.append((machine, simulators.start_environments(url, env, PER_SERVER)))
    return started


def readiness(machine: Machine) -> str:
    """Return status and text of a server's ``/readyz``."""
    program = "from operators import ask; print(*ask('127.0.0.1:7100', '/readyz'))"
    return subprocess.run(
        machine.command(sys.executable, "-c", program),
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1],
    ).stdout  # fmt: skip


def episodes(environments: Process) -> int:
    """Return how many the environments have said to have played."""
    said = [line for line in environments.output().splitlines() if " | episodes " in line]
    return int(said[-1].split(" | episodes ")[1].split(" ")[0].replace(",", "")) if said else 0


def progress(parameter_server: Process) -> str:
    """Return the last line that says how far the training is."""
    said = [line for line in parameter_server.output().splitlines() if " step " in line]
    return said[-1] if said else ""


def wait_for_environments(parameter_server: Process, count: int) -> None:
    wait_for(lambda: f" {count} environments on " in progress(parameter_server), "environments")


def steps(parameter_server: Process) -> int:
    """Return how far the training is."""
    said = progress(parameter_server)
    return int(said.split(" step ")[1].split(" ")[0].replace(",", "")) if said else 0


def wait_for_episodes(environments: Process) -> None:
    played = episodes(environments)
    wait_for(lambda: episodes(environments) > played, "more episodes")


def test_a_replay_a_learner_and_two_rlx_servers_of_which_one_is_cut_off(
    training: Training, machines: Network
) -> None:
    central, replay, learner = (machines.add() for _ in range(3))
    training.parameter_server_url = f"{central.address}:7000"
    training.learner_url = f"{learner.address}:7002"
    replay_url = f"{replay.address}:7003"
    training.configure(
        SMALL_SAC, learner={"replay-servers": [replay_url]}, replay_server={"bind": replay_url}
    )
    parameter_server = central.start("relaax-parameter-server")
    parameter_server.says("global step is ")
    replay.start("relaax-replay-server").says("storing what is delivered at ")
    learning = learner.start("relaax-learner")
    (cut, lost), (_, others) = start_rlx_servers(machines, "Pendulum-v1")
    wait_for_environments(parameter_server, 2 * PER_SERVER)
    wait_for_episodes(lost)
    with cut.cut_off():
        began, before = time.monotonic(), steps(parameter_server)
        wait_for_environments(parameter_server, PER_SERVER)
        wait_for_episodes(others)
        time.sleep(max(0.0, CUT_S - (time.monotonic() - began)))
        assert steps(parameter_server) > before
    wait_for_environments(parameter_server, 2 * PER_SERVER)
    wait_for_episodes(lost)
    wait_for_episodes(others)
    for process in (parameter_server, learning, lost, others):
        assert process.is_running()
        assert "Traceback" not in process.output()


def test_two_shards_of_the_parameter_server_of_which_one_is_cut_off(
    training: Training, machines: Network
) -> None:
    """Workers wait for it, and all go on from where they were when it is back."""
    first, second = machines.add(), machines.add()
    urls = [f"{first.address}:7000", f"{second.address}:7000"]
    training.configure(
        SMALL_DA3C, {"shards": urls, "bind": "0.0.0.0:7000"}, {"parameter-server": urls}
    )
    shards = [
        machine.start("relaax-parameter-server", "--shard", f"{number}/2", "--http-bind", OPERATORS)
        for number, machine in enumerate((first, second), 1)
    ]
    shards[0].says("global step is ")
    (_, one), (_, other) = start_rlx_servers(machines, "CartPole-v1")
    wait_for_episodes(one)
    with second.cut_off():
        time.sleep(ON_THE_WAY_S)
        before = steps(shards[0])
        time.sleep(STREAM_CUT_S - ON_THE_WAY_S)
        assert steps(shards[0]) == before
        assert re.match(r"503 .*shard 2/2.* is away", readiness(first))
    wait_for(lambda: steps(shards[0]) > before + 1000, "updates of both shards")
    wait_for_episodes(one)
    wait_for_episodes(other)
    for shard in shards:
        assert shard.is_running()
        assert "Traceback" not in shard.output()
        assert "are lost" not in shard.output()
