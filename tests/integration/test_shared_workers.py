"""Workers that share the connections: how they start, die, and are replaced."""

import os
import re
import signal

import numpy as np
import psutil
import pytest
from processes import SMALL_DA3C, Process, Training, wait_for
from worker_modes import SEVERAL, SEVERAL_WORKERS

from relaax.client import Backoff, Client, Failure, VectorClient
from relaax.parameters import Bridge

pytestmark = [pytest.mark.integration, SEVERAL]

STATE = np.zeros(4, np.float32)


def shared_workers(rlx_server: Process) -> dict[int, int]:
    """The latest pid of each worker, by its number."""
    started = re.findall(r"worker (\d+) starts \(pid (\d+)\)", rlx_server.output())
    return {int(number): int(pid) for number, pid in started}


def worker_of(rlx_server: Process, connection: int) -> int:
    """The pid of the worker that was given a connection, counted from 1.

    It may have answered the connection's first message before the RLX server writes its line.
    """

    def said() -> list[str]:
        return re.findall(r"worker (\d+) serves", rlx_server.output())

    wait_for(lambda: len(said()) >= connection, f"connection {connection} in the log")
    return int(said()[connection - 1])


def test_connections_are_spread_over_workers_that_were_forked_before(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    forked = set(shared_workers(rlx_server).values())
    assert len(forked) == SEVERAL_WORKERS
    clients = [Client(training.rlx_server_url, timeout_s=60) for _ in range(4)]
    served_by = []
    for number, client in enumerate(clients, start=1):
        client.init(STATE)
        served_by.append(worker_of(rlx_server, number))
    assert sorted(served_by) == sorted([*forked, *forked])
    for client in clients:
        client.disconnect()
    assert {process.pid for process in rlx_server.children()} > forked


def test_a_connection_costs_a_shared_worker_little(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    first = Client(training.rlx_server_url, timeout_s=60)
    first.init(STATE)
    before = memory_of_workers(rlx_server)
    clients = [Client(training.rlx_server_url, timeout_s=60) for _ in range(100)]
    for client in clients:
        client.init(STATE)
    assert memory_of_workers(rlx_server) - before < 20 * 1024 * 1024
    for client in [first, *clients]:
        client.disconnect()


def memory_of_workers(rlx_server: Process) -> int:
    pids = shared_workers(rlx_server).values()
    return sum(psutil.Process(pid).memory_full_info().uss for pid in pids)


def test_a_killed_worker_is_started_again_and_its_clients_come_back(
    training: Training, bridge: Bridge
):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    environments = training.start_environments(4, is_paced=True)
    wait_for(lambda: bridge.increment_global_t(0) > 200, "progress")
    killed = shared_workers(rlx_server)[1]
    os.kill(killed, signal.SIGKILL)
    rlx_server.says(rf"worker 1 \(pid {killed}\) was killed by SIGKILL")
    wait_for(lambda: shared_workers(rlx_server)[1] != killed, "another worker")
    replacement = shared_workers(rlx_server)[1]
    rlx_server.says(rf"worker {replacement} serves")
    target = bridge.increment_global_t(0) + 500
    wait_for(lambda: bridge.increment_global_t(0) > target, "progress again")
    assert environments.is_running()


def send_until_it_fails(client: Client) -> None:
    for _ in range(1000):
        client.send(1.0, STATE)


def test_a_worker_that_dies_ends_its_own_connections_alone(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    backoff = Backoff(initial_s=0.1)
    with (
        Client(training.rlx_server_url, timeout_s=60, reconnect=backoff) as unlucky,
        Client(training.rlx_server_url, timeout_s=60) as neighbour,
    ):
        unlucky.init(STATE)
        killed = worker_of(rlx_server, 1)
        neighbour.init(STATE)
        assert worker_of(rlx_server, 2) != killed
        os.kill(killed, signal.SIGKILL)
        with pytest.raises(Failure) as lost:
            send_until_it_fails(unlucky)
        assert not lost.value.is_final
        assert unlucky.init(STATE) in (0, 1)
        for _ in range(20):
            neighbour.send(1.0, STATE)


def test_two_servers_with_different_networks_say_so_and_the_rlx_server_ends(training: Training):
    training.start_parameter_server()
    training.configure({**SMALL_DA3C, "action_size": 3})
    rlx_server = training.start_command("relaax-rlx-server")
    assert rlx_server.wait() == 2
    assert "do the parameter server and the RLX server read the same" in rlx_server.output()
    assert len(re.findall(r"worker \d starts", rlx_server.output())) == SEVERAL_WORKERS


def test_observations_of_two_kinds_are_not_mixed_in_one_worker(training: Training):
    training.configure({**SMALL_DA3C, "state_size": [84, 84], "hidden_layers": [8]})
    training.start_parameter_server()
    training.start_rlx_server("--workers", "1")
    pictures = np.zeros((84, 84), np.uint8)
    with Client(training.rlx_server_url, timeout_s=60) as client:
        client.init(pictures)
        with (
            Client(training.rlx_server_url, timeout_s=60) as other,
            pytest.raises(Failure, match=r"float32\[84, 84, 1\], those of the other.*uint8"),
        ):
            other.init(pictures.astype(np.float32))
        client.send(1.0, pictures)


def test_what_a_shared_worker_measures_reaches_the_parameter_server(training: Training):
    training.configure(SMALL_DA3C, {"metrics-dir": str(training.directory / "metrics")})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    environments = training.start_environments(2, is_paced=True)
    wait_for(lambda: "episodes" in environments.output(), "episodes")
    (events,) = wait_for(
        lambda: list((training.directory / "metrics").rglob("events*")), "an event file"
    )
    expected = [
        b"inference/batch_size_p99",
        b"inference/queue_wait_p99",
        b"inference/time_p50",
        b"learner/policy_lag_min",
        b"learner/policy_lag_max",
        b"episode/reward",
        b"client/act_latency",
    ]
    wait_for(lambda: all(name in events.read_bytes() for name in expected), "all metrics")
    assert parameter_server.is_running()


def test_many_environments_share_a_connection(training: Training, bridge: Bridge):
    training.start_parameter_server()
    training.start_rlx_server()
    with VectorClient(training.rlx_server_url, 5, timeout_s=60) as client:
        observations = np.zeros((5, 4), np.float32)
        assert client.init(observations).shape == (5,)
        for _ in range(12):
            assert set(client.send(np.ones(5), observations).tolist()) <= {0, 1}
    wait_for(lambda: bridge.increment_global_t(0) == 50, "two rollouts of five steps for each of 5")


def test_while_the_parameter_server_is_away_clients_are_answered(training: Training):
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    with Client(training.rlx_server_url, timeout_s=60) as client:
        client.init(STATE)
        parameter_server.kill()
        assert {client.send(1.0, STATE) for _ in range(100)} <= {0, 1}
