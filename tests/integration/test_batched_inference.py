"""The compute process: who depends on it, and what happens without it."""

import contextlib
import os
import re
import signal
import socket

import numpy as np
import psutil
import pytest
from inference_modes import BATCHED
from processes import SMALL_DA3C, Process, Training, wait_for

from relaax.bridge import Bridge
from relaax.client import Backoff, Client, Failure, VectorClient
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode, Hello

pytestmark = [pytest.mark.integration, BATCHED]

STATE = np.zeros(4, np.float32)


def compute_process(rlx_server: Process) -> int:
    """The pid of the latest one."""
    return int(re.findall(r"compute process (\d+) starts", rlx_server.output())[-1])


def test_workers_hold_no_tensorflow_and_little_memory(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    compute = compute_process(rlx_server)
    with Client(training.rlx_server_url, timeout_s=60) as client:
        client.init(STATE)
        worker = int(rlx_server.says(r"worker (\d+) serves")[1])
        with open(f"/proc/{worker}/maps") as maps:
            assert "tensorflow" not in maps.read()
        with open(f"/proc/{compute}/maps") as maps:
            assert "tensorflow" in maps.read()
        assert psutil.Process(worker).memory_full_info().uss < 12 * 1024 * 1024
        for process in (worker, compute):
            assert os.sched_getscheduler(process) == os.SCHED_BATCH  # see _let_others_finish


def test_a_killed_compute_process_is_started_again_and_clients_come_back(
    training: Training, bridge: Bridge
):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    training.start_environments(3)
    wait_for(lambda: bridge.increment_global_t(0) > 200, "progress")
    killed = compute_process(rlx_server)
    os.kill(killed, signal.SIGKILL)
    rlx_server.says(rf"compute process \(pid {killed}\) was killed by SIGKILL")
    rlx_server.says("closing .* connection.*: the compute process is gone")
    wait_for(lambda: compute_process(rlx_server) != killed, "a new compute process")
    target = bridge.increment_global_t(0) + 500
    wait_for(lambda: bridge.increment_global_t(0) > target, "progress again")


def send_until_it_fails(client: Client) -> None:
    for _ in range(1000):
        client.send(1.0, STATE)


def test_a_client_is_told_that_the_compute_process_is_gone(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    with Client(training.rlx_server_url, timeout_s=60, reconnect=Backoff()) as client:
        client.init(STATE)
        os.kill(compute_process(rlx_server), signal.SIGKILL)
        with pytest.raises(Failure, match="the compute process is gone") as told:
            send_until_it_fails(client)
        assert told.value.code == ErrorCode.SERVER
        assert client.init(STATE) in (0, 1)


def test_a_client_that_says_nothing_is_told_too(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    host, _, port = training.rlx_server_url.rpartition(":")
    idle = FrameConnection(socket.create_connection((host, int(port))))
    with contextlib.closing(idle):
        idle.send(binary.encode_hello(Hello("a simulator that thinks for long", "a run", 1)))
        binary.decode_welcome(idle.receive())
        os.kill(compute_process(rlx_server), signal.SIGKILL)
        with pytest.raises(binary.Error, match="the compute process is gone") as told:
            binary.raise_if_error(idle.receive())
    assert told.value.code == ErrorCode.SERVER
    rlx_server.says(r"closing connections \(1\): the compute process is gone")
    wait_for(lambda: compute_process(rlx_server), "a new compute process")


def test_two_servers_with_different_networks_say_so_and_the_rlx_server_ends(training: Training):
    training.start_parameter_server()
    training.configure({**SMALL_DA3C, "action_size": 3})
    rlx_server = training.start_command("relaax-rlx-server")
    assert rlx_server.wait() == 2
    assert "do the parameter server and the RLX server read the same" in rlx_server.output()
    assert rlx_server.output().count("compute process") == 2  # its start and its end


def test_observations_of_two_kinds_are_not_mixed(training: Training):
    training.configure({**SMALL_DA3C, "state_size": [84, 84], "hidden_layers": [8]})
    training.start_parameter_server()
    training.start_rlx_server()
    pictures = np.zeros((84, 84), np.uint8)
    with Client(training.rlx_server_url, timeout_s=60) as client:
        client.init(pictures)
        with (
            Client(training.rlx_server_url, timeout_s=60) as other,
            pytest.raises(Failure, match=r"float32\[84, 84, 1\], those of others.*uint8"),
        ):
            other.init(pictures.astype(np.float32))
        client.send(1.0, pictures)


def test_what_the_compute_process_measures_reaches_the_parameter_server(training: Training):
    training.configure(SMALL_DA3C, {"metrics-dir": str(training.directory / "metrics")})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    environments = training.start_environments(2)
    wait_for(lambda: "episodes" in environments.output(), "episodes")
    (events,) = wait_for(
        lambda: list((training.directory / "metrics").glob("events*")), "an event file"
    )
    expected = [
        b"inference_batch_size_p99",
        b"inference_queue_wait_p99",
        b"inference_time_p50",
        b"policy_lag_min",
        b"policy_lag_max",
        b"episode_reward",
        b"act_latency_on_client",
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
