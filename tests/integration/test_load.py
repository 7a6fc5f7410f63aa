"""Clients that ask for too much: what they cost, and what the others notice of it."""

import contextlib
import signal
import socket
import struct
from collections.abc import Iterator

import pytest
from event_scalars import scalars
from operators import figure, figures
from processes import SMALL_DA3C, Process, Training, free_port, wait_for
from worker_modes import IN_BOTH_MODES, SHARED

from relaax.client import Client, Failure
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode, Hello, Metric

pytestmark = pytest.mark.integration

STATE = [0.0] * 4

STRANGERS = 300


class Loaded:
    """A training whose RLX server has small limits, and the clients of a test."""

    def __init__(self, training: Training, **limits: float) -> None:
        self.training = training
        self.operators = f"127.0.0.1:{free_port()}"
        training.configure(SMALL_DA3C, rlx_server={"http-bind": self.operators, **limits})
        training.start_parameter_server()
        self.server: Process = training.start_rlx_server()
        host, port = training.rlx_server_url.split(":")
        self.place = (host, int(port))

    def refused(self, reason: str) -> float:
        return figures(self.operators).get(("relaax_connections_refused_total", reason), 0.0)


@contextlib.contextmanager
def connections(place: tuple[str, int], count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as opened:
        yield [opened.enter_context(socket.create_connection(place, 20)) for _ in range(count)]


@IN_BOTH_MODES
def test_strangers_get_no_worker_and_leave_others_alone(training: Training) -> None:
    loaded = Loaded(training, **{"hello-timeout": 1.0})
    children = {child.pid for child in loaded.server.children()}
    with Client(training.rlx_server_url, timeout_s=20) as client:
        client.init(STATE)
        with connections(loaded.place, STRANGERS) as strangers:
            for half in strangers[::2]:
                half.sendall(struct.pack("<I", 40))  # a frame of which no more comes
            for _ in range(20):
                client.send(1.0, STATE)
            started = {child.pid for child in loaded.server.children()} - children
            assert len(started) == (1 if training.workers == "connection" else 0)
            for stranger in strangers:
                stranger.settimeout(20)
                assert stranger.recv(1) == b""
            client.send(1.0, STATE)
        assert figure(loaded.operators, "relaax_connections") == 1
    wait_for(lambda: loaded.refused("not proved") == STRANGERS, "the count of strangers")
    assert "it has not begun within 1 s (--hello-timeout)" in loaded.server.output()


@IN_BOTH_MODES
def test_connections_beyond_a_limit_are_refused_until_others_leave(training: Training) -> None:
    loaded = Loaded(training, **{"max-connections": 2})
    with contextlib.ExitStack() as opened:
        clients = [
            opened.enter_context(Client(training.rlx_server_url, timeout_s=20, protocol=2))
            for _ in range(3)
        ]
        for client in clients[:2]:
            client.init(STATE)
        with pytest.raises(Failure) as refused:
            clients[2].init(STATE)
        assert not refused.value.is_final
        assert refused.value.code == ErrorCode.GO_ELSEWHERE
        assert "2 connections are served (--max-connections)" in refused.value.message
        loaded.server.says(r"2 connections are served \(--max-connections\)")
        wait_for(lambda: loaded.refused("limit") >= 1, "the count of a refusal")
        clients[0].__exit__(None, None, None)

        def is_served() -> bool:
            with contextlib.suppress(Failure):
                clients[2].init(STATE)
                return True
            return False

        wait_for(is_served, "room for another connection")


@SHARED
def test_limits_of_an_address_of_messages_and_of_episodes(training: Training) -> None:
    loaded = Loaded(
        training,
        **{"max-connections-per-address": 2, "max-message-rate": 50, "max-episode-steps": 5},
    )
    with connections(loaded.place, 3) as opened:
        opened[2].settimeout(20)
        assert opened[2].recv(1) == b""
        loaded.server.says(r"2 connections from this address .*--max-connections-per-address")
    with Client(training.rlx_server_url, timeout_s=20, protocol=2) as client:

        def long_episode() -> str:
            """Play on after the limit; return why that ends."""
            try:
                client.init(STATE)
                for _ in range(6):
                    client.send(1.0, STATE)
            except Failure as failure:  # or those before have not been forgotten yet
                return failure.message if "episode" in failure.message else ""
            return ""

        assert "more than 5 steps (--max-episode-steps)" in wait_for(long_episode, "an episode")
    metric = binary.encode_metric(Metric("flood", 1.0))

    def is_stopped() -> bool:
        """Send messages until the connection is closed; return whether they were the reason."""
        sock = socket.create_connection(loaded.place, 20)
        with contextlib.closing(FrameConnection(sock)) as flood, contextlib.suppress(OSError):
            flood.send(binary.encode_hello(Hello("", "")))
            for _ in range(20_000):
                flood.send(metric)
        return "sends more than 50 messages a second (--max-message-rate)" in loaded.server.output()

    wait_for(is_stopped, "the end of a flood")


@IN_BOTH_MODES
def test_an_operator_sees_whose_metrics_wait(training: Training) -> None:
    loaded = Loaded(training, **{"max-metric-rate": 20})
    with Client(training.rlx_server_url, timeout_s=20) as client:
        client.init(STATE)
        for number in range(50):
            client.metrics().scalar("speed", float(number))
        client.send(1.0, STATE)
        loaded.server.says(r"127\.0\.0\.1:\d+ has sent 20 metrics in a second.*--max-metric-rate")
        wait_for(
            lambda: figure(loaded.operators, "relaax_metric_rests_total") >= 2,
            "the count of what waited",
        )


@SHARED
def test_metrics_of_many_names_are_dropped_and_the_others_stored(training: Training) -> None:
    operators, metrics = f"127.0.0.1:{free_port()}", training.directory / "metrics"
    training.configure(
        SMALL_DA3C,
        {
            "metrics-dir": str(metrics),
            "http-bind": operators,
            "max-client-metric-names": 3,
            "max-client-metric-rate": 2,
        },
    )
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    with Client(training.rlx_server_url, timeout_s=20) as client:
        client.init(STATE)
        for number in range(10):
            client.metrics().scalar(f"name {number}", 1.0)
        for _ in range(50):
            client.metrics().scalar("name 0", 2.0)
        client.send(1.0, STATE)
        parameter_server.says("'client/name 3' is dropped: .*--max-client-metric-names")
        parameter_server.says("'client/name 0' is dropped: .*--max-client-metric-rate")
        wait_for(
            lambda: figures(operators).get(("relaax_client_metrics_dropped_total", "names")) == 7,
            "the count of names",
        )
        assert figures(operators)["relaax_client_metrics_dropped_total", "rate"] > 0
        run = metrics / training.yaml.stem
        wait_for(lambda: "server/steps_per_second" in scalars(run), "a metric of the server")
    parameter_server.signal(signal.SIGTERM)
    parameter_server.wait()
    stored = scalars(run)
    assert {tag for tag in stored if tag.startswith("client/")} == {
        f"client/name_{number}" for number in range(3)
    }
