"""Clients that are slow, silent, stopped or malicious: 200 of them delay no other."""

import contextlib
import itertools
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from processes import Process, Training, wait_for
from worker_modes import SHARED

from relaax.client import Client
from relaax.protocol import binary
from relaax.protocol.binary import Hello
from relaax.steps import START, Steps

#: One shared worker: all clients are in its hands.
pytestmark = [pytest.mark.integration, SHARED]

CLIENTS = 200

#: An answer that takes longer than this has been delayed by another client, whose own message may
#: take longer.
ANSWER_S = 15.0
MESSAGE_TIMEOUT_S = 20.0

STATE = np.zeros(4, np.float32)


def frame(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload


def hello(environments: int) -> bytes:
    return frame(binary.encode_hello(Hello("a run", "a slow simulator", environments)))


def steps(flags: int, environments: int = 1) -> bytes:
    """A step of each environment."""
    return frame(
        binary.encode_steps(
            Steps(
                np.arange(environments),
                np.full(environments, flags, np.uint8),
                np.zeros(environments),
                np.tile(STATE, (environments, 1)),
                (),
            )
        )
    )


HELLO = hello(environments=1)

#: Many answers at once fill what the network holds of them soon.
ENVIRONMENTS = 100


def start_servers(training: Training, *options: str) -> Process:
    training.start_parameter_server()
    return training.start_rlx_server("--message-timeout", str(MESSAGE_TIMEOUT_S), *options)


@contextlib.contextmanager
def connected(training: Training, count: int = CLIENTS) -> Iterator[list[socket.socket]]:
    """Bare sockets to the server, that never block."""
    host, _, port = training.rlx_server_url.rpartition(":")
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(count):
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect((host, int(port)))
            sock.setblocking(False)
            sockets.append(sock)
        yield sockets


def play(training: Training, between: Callable[[int], None] = lambda step: None) -> None:
    """Play an episode; every answer must come in time, whatever happens between the steps."""
    with Client(training.rlx_server_url, timeout_s=ANSWER_S) as client:
        client.init(STATE)
        for step in range(200):
            between(step)
            assert client.send(1.0, STATE) in (0, 1)
        assert client.reset(1.0) == 201


def send_what_fits(sock: socket.socket, data: bytes) -> int:
    try:
        return sock.send(data)
    except BlockingIOError:
        return 0


def send_for_ever(sock: socket.socket) -> None:
    """Send whole frames until the server closes the connection; read no answer."""
    sock.setblocking(True)
    with contextlib.suppress(OSError):
        while True:
            sock.sendall(steps(0, ENVIRONMENTS))


def test_clients_that_read_nothing_delay_no_other(training: Training):
    start_servers(training)
    with connected(training) as sockets:
        for sock in sockets:
            sock.send(HELLO + steps(START))
        flood = steps(0) * 100

        def send_more(step: int) -> None:
            for sock in itertools.islice(sockets, step, None, 20):
                send_what_fits(sock, flood)

        play(training, send_more)


def test_clients_that_send_a_byte_at_a_time_delay_no_other(training: Training):
    start_servers(training)
    message = HELLO + steps(START)
    with connected(training) as sockets:

        def send_a_byte(step: int) -> None:
            for sock in sockets:
                sock.send(message[step : step + 1])

        play(training, send_a_byte)


def test_clients_that_stop_in_the_middle_of_a_frame_delay_no_other(training: Training):
    start_servers(training)
    with connected(training) as sockets:
        for sock in sockets:
            sock.send(HELLO + steps(START) + steps(0)[:20])
        play(training)


def test_clients_that_announce_much_and_send_little_cost_no_memory(training: Training):
    rlx_server = start_servers(training)
    before = memory_of(rlx_server)
    with connected(training) as sockets:
        for sock in sockets:
            sock.send(struct.pack("<I", 60 * 1024 * 1024) + b"[")
        play(training)
        assert memory_of(rlx_server) - before < 300 * 1024 * 1024


def memory_of(rlx_server: Process) -> int:
    return sum(child.memory_full_info().uss for child in rlx_server.children())


def test_slow_clients_are_closed_when_their_time_is_up_and_leave_nothing(training: Training):
    rlx_server = start_servers(training, "--message-timeout", "1", "--hello-timeout", "1")
    worker = psutil.Process(int(rlx_server.says(r"worker 1 starts \(pid (\d+)\)")[1]))
    files = worker.num_fds()
    with connected(training, 22) as sockets:
        for sock in sockets[:10]:
            sock.send(HELLO + steps(START) + steps(0)[:20])
        for sock in sockets[10:20]:
            sock.send(HELLO[:7])
        for sock in sockets[20:]:
            sock.send(hello(ENVIRONMENTS) + steps(START, ENVIRONMENTS))
        wait_for(lambda: worker.num_fds() == files + 22, "22 connections")
        with ThreadPoolExecutor(2) as threads:
            for sock in sockets[20:]:
                threads.submit(send_for_ever, sock)
            wait_for(lambda: worker.num_fds() == files, "the end of all slow connections")
    said = rlx_server.output()
    assert said.count("bytes of a frame did not arrive within 1 s") == 10
    assert said.count("it has not begun within 1 s (--hello-timeout)") == 10
    assert said.count("has not taken") == 2
    play(training)
