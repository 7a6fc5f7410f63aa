"""The RLX server's process, admission and timeout."""

import socket
import subprocess
from pathlib import Path

import pytest
from operators import figures
from processes import Training, free_port, wait_for
from worker_modes import IN_BOTH_MODES

from relaax.client.connector import Backoff
from relaax.client.rlx_client import Client, Failure

pytestmark = [pytest.mark.integration, IN_BOTH_MODES]

STATE = [0.0] * 4


def play_an_episode(client: Client) -> float:
    client.init(STATE)
    for _ in range(12):
        client.send(1.0, STATE)
    return client.reset(1.0)


def test_the_server_itself_starts_no_threads(training: Training, monkeypatch: pytest.MonkeyPatch):
    """A fork does not survive those of gRPC, TensorFlow and BLAS; workers have plenty of them."""
    training.start_parameter_server()
    monkeypatch.delenv("OMP_NUM_THREADS")  # the server sets them itself, in a start of its own
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    rlx_server = training.start_rlx_server()
    with Client(training.rlx_server_url, timeout_s=60) as client:
        assert play_an_episode(client) == 13
        tasks = [len(list(Path(f"/proc/{p.pid}/task").iterdir())) for p in rlx_server.children()]
        assert max(tasks) > 1
        assert len(list(Path(f"/proc/{rlx_server.pid}/task").iterdir())) == 1


def test_ps_tells_the_processes_of_a_server_apart(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    with Client(training.rlx_server_url, timeout_s=60) as client:
        play_an_episode(client)
        shown = subprocess.run(
            ["ps", "-o", "args=", "--ppid", str(rlx_server.pid)],
            capture_output=True, text=True, timeout=20, check=True,
        ).stdout.splitlines()  # fmt: skip
    assert "relaax-rlx-server: watcher of the parameter server" in map(str.strip, shown)
    assert sum(line.startswith("relaax-rlx-server: worker ") for line in shown) >= 1


def test_a_connection_is_closed_after_the_timeout_and_a_client_with_backoff_goes_on(
    training: Training,
):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server("--timeout", "0.001")
    backoff = Backoff(initial_s=0.1)
    with Client(training.rlx_server_url, timeout_s=60, reconnect=backoff) as client:
        assert [play_an_episode(client) for _ in range(3)] == [13, 13, 13]
    wait_for(lambda: rlx_server.output().count(" serves ") == 3, "a worker for each episode")


def test_what_is_assumed_of_clients_that_announce_nothing_is_said_once(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    for _ in range(3):
        with Client(training.rlx_server_url, protocol=1, timeout_s=60) as client:
            play_an_episode(client)
    said = rlx_server.says(r"WARNING:doubtful: (a client announces no action space.*)")[1]
    assert 'taken to act in {"type": "Discrete", "n": 2} and to observe {"type": "Box", ' in said
    assert rlx_server.output().count("announces no action space") == 1


def test_a_server_whose_parameter_server_does_not_come_back_exits_with_status_1(training: Training):
    parameter_server = training.start_parameter_server()
    for_operators = f"127.0.0.1:{free_port()}"
    rlx_server = training.start_rlx_server("--give-up", "1", "--http-bind", for_operators)
    up = ("relaax_parameter_server_up",)  # not among the figures from the first moment on
    wait_for(lambda: figures(for_operators).get(up), "its first answer")
    parameter_server.kill()
    assert rlx_server.wait() == 1
    assert "the parameter server was away for 1 s (--give-up)" in rlx_server.output()


def test_without_memory_a_client_is_sent_away_with_both_figures_in_the_log(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server("--worker-memory", "1e9")
    with Client(training.rlx_server_url, timeout_s=60) as client, pytest.raises(Failure):
        client.init(STATE)
    rlx_server.says(
        r"WARNING:refusing a connection from 127.0.0.1:\d+: \d+ MiB of memory are available "
        r"and a connection needs 1000000000 MiB"
    )


def test_a_client_that_connects_and_leaves_costs_nobody_anything(training: Training):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    host, _, port = training.rlx_server_url.rpartition(":")
    for _ in range(3):
        socket.create_connection((host, int(port))).close()
    with Client(training.rlx_server_url, timeout_s=60) as client:
        assert play_an_episode(client) == 13
    said_nothing = 3 if training.workers != "connection" else 0  # which has no worker of its own
    assert rlx_server.output().count(" serves ") == 1 + said_nothing
    assert "Traceback" not in rlx_server.output()
