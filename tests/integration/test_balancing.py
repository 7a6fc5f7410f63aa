"""Several RLX servers behind a real HAProxy: clients come back, and end up evenly spread."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from balancer import NEEDS_HAPROXY, Balancer
from operators import ask, figure, is_ready, parsed
from processes import Process, Training, free_port, wait_for

from relaax.client.connector import Backoff
from relaax.client.rlx_client import Client, Failure

pytestmark = [pytest.mark.integration, NEEDS_HAPROXY]

STATE = [0.0] * 4
CLIENTS = 8
STEPS = 20

#: Seconds, as a simulator in real time may take.
STEP_S = 0.02


class Players:
    """Clients that play episodes of so many steps, and reconnect, until they are stopped."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self.scores: list[float] = []
        self.lost: list[str] = []
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        assert not self.errors

    def _run(self) -> None:
        try:
            backoff = Backoff(initial_s=0.05, max_s=0.5, attempts=1000)
            with Client(self._url, timeout_s=60, reconnect=backoff, wait=self._stop.wait) as client:
                while not self._stop.is_set():
                    self._play(client)
        except BaseException as error:
            if not self._stop.is_set():
                self.errors.append(error)

    def _play(self, client: Client) -> None:
        client.init(STATE)
        try:
            for _ in range(STEPS - 1):
                time.sleep(STEP_S)
                client.send(1.0, STATE)
            self.scores.append(client.reset(1.0))
        except Failure as failure:
            self.lost.append(failure.message)


@contextmanager
def players(url: str) -> Iterator[Players]:
    playing = Players(url)
    try:
        yield playing
    finally:
        playing.stop()


class Servers:
    """RLX servers of one training, by number: each has an address for clients and for operators."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self.addresses = [
            (f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}") for _ in range(2)
        ]

    def start(self, number: int, *flags: str, workers: str = "1") -> Process:
        bind, operators = self.addresses[number]
        address = ("--bind", bind, "--http-bind", operators)
        return self._training.start_rlx_server(*address, "--workers", workers, *flags)

    def connections(self) -> list[int]:
        """Return how many each serves; 0 of one that does not answer, or was killed meanwhile."""
        answers = [ask(operators, "/metrics") for _, operators in self.addresses]
        return [
            int(parsed(text).get(("relaax_connections",), 0)) if status else 0
            for status, text in answers
        ]

    def wait_for_connections(self, *expected: int) -> None:
        wait_for(lambda: self.connections() == list(expected), f"connections {expected}")


@pytest.fixture(name="servers")
def _servers(training: Training) -> Servers:
    training.start_parameter_server()
    return Servers(training)


def test_clients_are_spread_evenly_also_when_a_server_was_killed_and_is_back(
    training: Training, servers: Servers
) -> None:
    first = servers.start(0, "--timeout", "0.5")
    servers.start(1, "--timeout", "0.5")
    balancer = Balancer(training, servers.addresses)
    with players(balancer.url) as playing:
        servers.wait_for_connections(4, 4)
        first.kill()
        servers.wait_for_connections(0, 8)
        servers.start(0, "--timeout", "0.5")
        servers.wait_for_connections(4, 4)  # without --timeout all would stay where they are
        played = len(playing.scores)
        wait_for(lambda: len(playing.scores) > played + CLIENTS, "episodes after that")
    assert set(playing.scores) == {STEPS}
    assert len(playing.lost) <= CLIENTS / 2  # those that the killed server had


@pytest.mark.parametrize("workers", ["connection", "1"])
def test_a_server_that_drains_cuts_no_episode_off(
    training: Training, servers: Servers, workers: str
) -> None:
    first = servers.start(0, workers=workers)
    servers.start(1, workers=workers)
    balancer = Balancer(training, servers.addresses)
    with players(balancer.url) as playing:
        servers.wait_for_connections(4, 4)
        first.signal(signal.SIGTERM)
        assert first.wait() == 0
        servers.wait_for_connections(0, 8)
    assert not playing.lost
    assert set(playing.scores) == {STEPS}
    first.says("SIGTERM: letting connections go")
    assert "did not leave" not in first.output()


def test_a_server_without_memory_gets_no_clients_and_says_why(
    training: Training, servers: Servers
) -> None:
    servers.start(0, "--worker-memory", "1e9")
    servers.start(1)
    full = servers.addresses[0][1]
    wait_for(lambda: "MiB of memory are available" in ask(full, "/readyz")[1], "the reason")
    wait_for(lambda: is_ready(servers.addresses[1][1]), "the other server")
    balancer = Balancer(training, servers.addresses)  # which thinks at first that all are ready
    with players(balancer.url) as playing:
        servers.wait_for_connections(0, 8)
        refused = figure(full, "relaax_connections_refused_total", "memory")
        wait_for(lambda: len(playing.scores) > 2 * CLIENTS, "episodes")
        assert figure(full, "relaax_connections_refused_total", "memory") == refused
    assert not playing.lost
    assert ask(full, "/healthz") == (200, "ok\n")


def test_clients_that_a_server_refuses_find_another_one_without_health_checks_too(
    training: Training, servers: Servers
) -> None:
    refusing = servers.start(0, "--worker-memory", "1e9")
    servers.start(1)
    balancer = Balancer(training, servers.addresses, checks=False)
    with players(balancer.url) as playing:
        servers.wait_for_connections(0, 8)
        wait_for(lambda: len(playing.scores) > CLIENTS, "episodes")
    assert not playing.lost
    refusing.says("refusing a connection")


def test_a_client_whose_episode_does_not_end_is_closed_at_the_deadline(
    training: Training, servers: Servers
) -> None:
    server = servers.start(0, "--drain", "1")
    with Client(servers.addresses[0][0], timeout_s=60) as client:
        client.init(STATE)
        server.signal(signal.SIGTERM)
        wait_for(lambda: ask(servers.addresses[0][1], "/readyz")[0] != 200, "not to be ready")
        client.send(1.0, STATE)
        assert server.wait() == 0
        with pytest.raises(Failure):
            client.send(1.0, STATE)
    server.says("closing connections that did not leave within 1 s")
