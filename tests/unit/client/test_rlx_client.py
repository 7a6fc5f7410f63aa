import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest

from relaax.address import Address
from relaax.client import Backoff, Client, Failure
from relaax.client.transport import TcpTransport
from relaax.errors import ConfigurationError

HEAVY = {"tensorflow", "grpc", "pydantic", "yaml", "gymnasium", "psutil", "boto3", "google", "rich"}


def test_a_program_that_plays_its_own_simulators_loads_nothing_heavy() -> None:
    code = "import sys, relaax.client.rlx_client, relaax.client.simulator_task; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "numpy" in loaded
    assert HEAVY.isdisjoint(name.partition(".")[0] for name in loaded)
    assert not any(name.startswith("relaax.server") for name in loaded)


def test_an_episode_as_messages(start_server) -> None:
    server = start_server()
    with Client(server.url, protocol=1) as client:
        assert client.init([1, 2]) == 1
        assert client.send(0.5, [3, 4]) == 1
        assert client.reset(-1.0) == 10.0
        assert client.init([5, 6]) == 1
    assert server.messages == [
        ["act", "[1, 2]"],
        ["reward_and_act", 0.5, "[3, 4]"],
        ["reward_and_reset", -1.0],
        ["act", "[5, 6]"],
    ]
    assert server.accepted == 1


def test_nothing_is_connected_before_init(start_server, unused_url) -> None:
    client = Client(unused_url)
    with pytest.raises(Failure, match="start an episode with init"):
        client.send(1.0, [1])
    with pytest.raises(Failure, match="start an episode with init"):
        client.reset(1.0)
    client.metrics().scalar("dropped", 1)
    client.disconnect()
    assert start_server().accepted == 0


def test_array_actions_arrive_as_arrays(start_server) -> None:
    array = (
        '{"b64npz": "UEsDBC0AAAAIAAAAIQASmZ2Y//////////8HABQAb2JqLm5weQEAEACIAAAAAAAAAEwAAAAAAAAA'
        "m+wX6hsQychQxlCtnpJanFykbqWgbpNmoq6joJ6WX1RSlJgXn1+UkgoSd0vMKU4FihdnJBakAvkaRjqaOgq1ChQA"
        "LgYGBnsGhoZ9AFBLAQItAy0AAAAIAAAAIQASmZ2YTAAAAIgAAAAHAAAAAAAAAAAAAACAAQAAAABvYmoubnB5UEsF"
        'BgAAAAABAAEANQAAAIUAAAAAAA=="}'
    )
    payload = f'["act", {array}]'.encode()
    server = start_server(lambda _: len(payload).to_bytes(4, "little") + payload)
    with Client(server.url, protocol=1) as client:
        np.testing.assert_array_equal(client.init(0), np.float32([0.5, -0.25]))


def test_a_truncated_episode_tells_its_last_state_and_counts_its_rewards(start_server) -> None:
    server = start_server()
    with Client(server.url, protocol=1) as client:
        client.init(0)
        client.send(1.0, 1)
        assert client.truncate(0.5, 2) == 1.5
        client.init(3)
        assert client.truncate(0.25, 4) == 0.25
    assert server.messages == [
        ["act", "0"],
        ["reward_and_act", 1.0, "1"],
        ["reward_and_act", 0.5, "2"],
        ["act", "3"],
        ["reward_and_act", 0.25, "4"],
    ]


def test_an_episode_that_starts_anew_does_not_count_earlier_rewards(start_server) -> None:
    server = start_server()
    with Client(server.url, protocol=1) as client:
        client.init(0)
        client.send(1.0, 1)
        client.init(2)
        assert client.truncate(0.25, 3) == 0.25


def test_metrics_are_sent_and_not_answered(start_server) -> None:
    server = start_server()
    with Client(server.url, protocol=1) as client:
        client.init(0)
        client.metrics().scalar("loss", 0.5)
        client.metrics().scalar("loss", np.float32(0.25), 7)
        client.reset(0.0)
    assert server.messages[1:3] == [
        ["scalar_metric", "loss", 0.5],
        ["scalar_metric", "loss", 0.25, 7],
    ]


def test_metrics_after_a_lost_connection_are_dropped(start_server, close) -> None:
    server = start_server(lambda e: close if e.message[0] == "scalar_metric" else ["act", 1])
    with Client(server.url, protocol=1) as client:
        client.init(0)
        for _ in range(100):
            client.metrics().scalar("loss", 0.5)
        with pytest.raises(Failure):
            client.send(0.0, 1)
        client.metrics().scalar("loss", 0.5)
    assert server.verbs == ["act", "scalar_metric"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (["reset", 1.0], "broke the protocol: the reply 'act' was expected, 'reset' came"),
        (["act"], "broke the protocol: 'act' takes 1"),
        (b"\x02\x00\x00\x00{]", "broke the protocol: this is not JSON"),
        (b"\x00\x00\x00\x00", "broke the protocol: a frame of 0 bytes"),
        (b"HTTP/1.1 400 Bad Request", "broke the protocol: the peer speaks HTTP"),
    ],
)
def test_a_malformed_answer_is_a_failure_and_ends_the_connection(
    start_server, answer, message
) -> None:
    server = start_server(lambda e: answer if e.connection == 1 else ["act", 5])
    client = Client(server.url, protocol=1)
    with pytest.raises(Failure, match=message) as caught:
        client.init(0)
    assert caught.value.message == str(caught.value)
    assert client.init(0) == 5
    assert server.accepted == 2
    client.disconnect()


def test_a_wrong_score_is_a_failure(start_server) -> None:
    with Client(start_server(lambda _: ["act", 1]).url, protocol=1) as client:
        client.init(0)
        with pytest.raises(Failure, match="'reset' was expected, 'act' came"):
            client.reset(0.0)


def test_a_close_in_the_middle_of_an_episode_is_a_failure_and_init_connects_again(
    start_server, close
) -> None:
    server = start_server(lambda e: close if e.number == 2 else ["act", e.connection])
    client = Client(server.url, protocol=1, reconnect=Backoff())
    assert client.init(0) == 1
    with pytest.raises(Failure, match="closed the connection"):
        client.send(1.0, 1)
    with pytest.raises(Failure, match="start an episode with init"):
        client.send(1.0, 1)
    assert client.init(2) == 2
    assert server.messages[-1] == ["act", "2"]
    client.disconnect()


def test_an_unreachable_server_is_a_failure(unused_url) -> None:
    with pytest.raises(Failure, match=f"cannot connect to the RLX server at {unused_url}: "):
        Client(unused_url).init(0)


def test_a_silent_server_is_a_failure_after_the_timeout(start_server, silence) -> None:
    with (
        Client(start_server(lambda _: silence).url, protocol=1, timeout_s=0.01) as client,
        pytest.raises(Failure, match="lost the RLX server"),
    ):
        client.init(0)


def test_an_unsendable_state_is_the_callers_error_and_keeps_the_connection(start_server) -> None:
    server = start_server()
    with Client(server.url, protocol=1) as client:
        client.init(0)
        with pytest.raises(ValueError, match=r"the state\[1\] is nan"):
            client.send(1.0, [0, float("nan")])
        with pytest.raises(TypeError, match="the state cannot be sent"):
            client.send(1.0, object())
        assert client.send(1.0, [0, 1]) == 1
    assert server.accepted == 1


def test_init_retries_until_the_server_is_there(start_server, unused_url) -> None:
    pauses: list[float] = []
    server = start_server()

    class Redirected(TcpTransport):
        def connect(self, address, timeout_s):
            url = server.url if len(pauses) == 3 else str(address)
            return super().connect(Address.parse(url), timeout_s)

    client = Client(
        unused_url,
        reconnect=Backoff(jitter=0),
        wait=pauses.append,
        protocol=1,
        transport=Redirected(),
    )
    assert client.init(0) == 1
    assert pauses == [0.5, 1.0, 2.0]
    client.disconnect()


def test_a_server_that_closes_at_once_counts_as_a_failed_attempt(start_server, close) -> None:
    server = start_server(lambda e: ["act", e.connection] if e.connection > 2 else close)
    pauses: list[float] = []
    client = Client(server.url, reconnect=Backoff(jitter=0), wait=pauses.append, protocol=1)
    assert client.init(0) == 3
    assert pauses == [0.5, 1.0]
    client.disconnect()


def test_attempts_are_used_up_in_a_row(start_server, close) -> None:
    answers = {(2, 1): ["act", 1], (2, 2): ["reset", 1.0]}
    server = start_server(lambda e: answers.get((e.connection, e.number), close))
    client = Client(server.url, protocol=1, reconnect=Backoff(attempts=3), wait=lambda _: None)
    assert client.init(0) == 1
    assert client.reset(1.0) == 1.0
    with pytest.raises(
        Failure, match=r"gave up after 3 attempts over \d+\.\d s: .* closed"
    ) as said:
        client.init(0)
    assert said.value.is_final
    assert server.accepted == 4


def test_waiting_ends_when_it_is_told_to(unused_url) -> None:
    stop = threading.Event()
    stop.set()
    client = Client(unused_url, reconnect=Backoff(initial_s=30), wait=stop.wait)
    with pytest.raises(Failure, match="gave up after one attempt"):
        client.init(0)


@pytest.mark.skipif(not socket.has_ipv6, reason="this Python has no IPv6")
def test_an_ipv6_address_is_in_brackets() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listener:
        client = Client(f"[::1]:{listener.getsockname()[1]}", timeout_s=0.01, protocol=1)
        with pytest.raises(Failure, match="lost the RLX server"):
            client.init(0)
        connection, _ = listener.accept()
        assert connection.recv(100) == b'\x0c\x00\x00\x00["act", "0"]'
        connection.close()


@pytest.mark.parametrize(
    "url", ["", "localhost", ":7001", "localhost:", "localhost:http", "h:70000"]
)
def test_an_impossible_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(repr(url))):
        Client(url)


def test_the_address_of_a_parameter_server_is_an_error_that_says_so() -> None:
    """It speaks first: its settings would be a frame of 69 MB."""
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with (
            Client(f"127.0.0.1:{port}", timeout_s=30) as client,
            pytest.raises(Failure, match=r"the peer speaks HTTP/2 \(gRPC\) instead of RLX"),
        ):
            client.init([0.0])
    finally:
        server.stop(0).wait()
