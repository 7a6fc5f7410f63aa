"""The HTTP port for operators answers what load balancers and Prometheus ask."""

import contextlib
import socket
import ssl
import struct
import threading
import time
from contextlib import closing
from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from relaax.address import Address
from relaax.errors import ConfigurationError, NoSuchVersion
from relaax.net.access import Access, TokenFile
from relaax.net.access.process_access import access_while
from relaax.net.access.tls import TlsFiles
from relaax.server.certificates.secrets_folder import SecretsFolder
from relaax.telemetry.operators import OperatorPort, counter, gauge, http_server, operator_listener
from relaax.telemetry.operators.families import counters, gauges, histogram


@pytest.fixture(name="listener")
def _listener():
    return operator_listener(Address("127.0.0.1", 0))


@pytest.fixture(name="address")
def _address(listener):
    return listener.getsockname()


@pytest.fixture(name="port")
def _port(listener, address):  # whose port is not known any more when it is closed
    with closing(OperatorPort(listener)) as port:
        yield port


MONITOR, WRONG = "monitor-0123456789", "a-wrong-one-0123456789"


@pytest.fixture(name="guarded")
def _guarded(listener, tmp_path):
    with guarded_port(listener, tmp_path) as port:
        yield port


@contextlib.contextmanager
def guarded_port(listener, folder):
    """A port that asks for a token."""
    path = folder / "tokens"
    path.touch(mode=0o600)
    path.write_text(f"monitor {MONITOR}\n")
    with access_while(Access(tokens=TokenFile(path))), closing(OperatorPort(listener)) as port:
        yield port


def ask(address, path, token=None, method="GET"):
    connection = HTTPConnection(*address, timeout=20)
    with closing(connection):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


def samples(address):
    status, text = ask(address, "/metrics")
    assert status == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_server_is_alive_while_it_starts_and_ready_when_it_has_begun(port, address):
    assert ask(address, "/healthz") == (200, "ok\n")
    assert ask(address, "/readyz") == (503, "it is starting\n")
    port.begin()
    assert ask(address, "/readyz") == (200, "ok\n")


def test_all_that_is_wrong_is_said(port, address):
    port.begin()
    wrong = ["the parameter server does not answer", None, "memory is short"]
    for complaint in wrong:
        port.ready_if(lambda complaint=complaint: complaint)
    assert ask(address, "/readyz") == (
        503,
        "the parameter server does not answer; memory is short\n",
    )
    assert ask(address, "/healthz") == (200, "ok\n")
    port.alive_if(lambda: "it hangs")
    assert ask(address, "/healthz") == (503, "it hangs\n")


def test_figures_are_read_when_prometheus_asks(port, address):
    steps = [1.0]
    port.show(lambda: [counter("steps", "Steps", steps[0]), gauge("load", "Load", 0.5)])
    port.show(
        lambda: [
            counters("refused", "Refused", "reason", {"memory": 2, "no worker": 3}),
            gauges("scalar", "Scalars", "name", {"learner/fetch time": 0.25}),
        ]
    )
    assert samples(address)["relaax_steps_total",] == 1
    steps[0] = 7
    found = samples(address)
    assert found["relaax_steps_total",] == 7
    assert found["relaax_load",] == 0.5
    assert found["relaax_refused_total", "no worker"] == 3
    assert found["relaax_scalar", "learner/fetch time"] == 0.25
    assert found["process_resident_memory_bytes",] > 1e6


def test_a_histogram_counts_the_values_within_each_bound(port, address):
    port.show(lambda: [histogram("wait_seconds", "Wait", (0.1, 1.0), [9.5, 4, 2, 1])])
    found = samples(address)
    assert [found["relaax_wait_seconds_bucket", bound] for bound in ("0.1", "1", "+Inf")] == [
        4,
        6,
        7,
    ]
    assert found["relaax_wait_seconds_count",] == 7
    assert found["relaax_wait_seconds_sum",] == 9.5


def test_another_path_is_not_found_and_says_which_there_are(port, address):
    assert ask(address, "/") == (404, "/healthz, /readyz and /metrics are here\n")


def test_a_page_shows_what_is_below_it_as_json(port, address):
    def shown(path):
        if path != "tags":
            raise NoSuchVersion("tags are here")
        return {"latest": 7}

    port.page("database", shown)
    assert ask(address, "/database/tags") == (200, '{"latest": 7}\n')
    assert ask(address, "/database/other") == (404, "tags are here\n")
    assert ask(address, "/database/tags", method="POST")[0] == 405


def test_a_page_asks_for_a_token_as_figures_do(guarded, address):
    guarded.page("database", lambda path: path)
    assert ask(address, "/database/tags")[0] == 401
    assert ask(address, "/database/tags", MONITOR) == (200, '"tags"\n')


def test_silent_callers_delay_nobody(port, address):
    silent = [socket.create_connection(address) for _ in range(5)]
    assert ask(address, "/healthz") == (200, "ok\n")
    for client in silent:
        client.close()


def host_of_stranger(number, is_alone):
    return "127.0.0.2" if is_alone else f"127.0.1.{number + 1}"


@pytest.mark.parametrize("is_alone", [True, False])
def test_200_strangers_who_never_end_their_request_delay_nobody(port, address, is_alone):
    with contextlib.ExitStack() as opened:
        for number in range(200):
            source = (host_of_stranger(number, is_alone), 0)
            stranger = opened.enter_context(
                socket.create_connection(address, 20, source_address=source)
            )
            stranger.sendall(b"GET /")
            if number % 10 == 0:
                assert ask(address, "/healthz") == (200, "ok\n")
        began_at = time.monotonic()
        for _ in range(20):
            assert ask(address, "/healthz") == (200, "ok\n")
        assert time.monotonic() - began_at < http_server.REQUEST_S / 2


def test_strangers_of_the_same_address_delay_nobody_either(port, address):
    with contextlib.ExitStack() as opened:
        for _ in range(http_server.MOST_OF_AN_ADDRESS + 2):
            opened.enter_context(socket.create_connection(address, 20)).sendall(b"GET /")
        assert ask(address, "/healthz") == (200, "ok\n")


def test_a_request_that_comes_a_byte_at_a_time_has_a_deadline(listener, address, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_S", 0.5)
    with closing(OperatorPort(listener)), socket.create_connection(address, 20) as stranger:
        stranger.sendall(b"GET /healthz HTTP/1.0\r\nX-Slow: ")
        stranger.settimeout(0.05)  # a byte so often: no single wait of the server is a long one
        ends_at = time.monotonic() + 20
        while time.monotonic() < ends_at:
            try:
                stranger.sendall(b"a")
                assert stranger.recv(1) == b""
                return
            except TimeoutError:
                continue
            except OSError:  # closed with our byte unread
                return
    pytest.fail("the connection was never closed")


def test_wrong_tokens_all_at_once_delay_no_healthy_caller(guarded, address):
    done = threading.Event()
    answers = []

    def guess():
        while not done.is_set():
            with contextlib.suppress(OSError):  # one that was pushed out
                answers.append(ask(address, "/metrics", WRONG)[0])

    # An answered connection counts until its thread ends: two of each fit, and the healthy one's.
    count = http_server.MOST_OF_AN_ADDRESS // 2 - 1
    guessers = [threading.Thread(target=guess) for _ in range(count)]
    for guesser in guessers:
        guesser.start()
    try:
        began_at = time.monotonic()
        for _ in range(20):
            assert ask(address, "/healthz") == (200, "ok\n")
        assert time.monotonic() - began_at < http_server.REQUEST_S / 2
    finally:
        done.set()
        for guesser in guessers:
            guesser.join()
    assert len(answers) > 50  # each at once
    assert set(answers) == {401}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/elsewhere"])
def test_a_wrong_token_is_counted_whatever_it_is_shown_for(guarded, address, path):
    def refused():
        text = ask(address, "/metrics", MONITOR)[1]
        return [line for line in text.splitlines() if line.startswith("relaax_refused_total")]

    assert 'relaax_refused_total{port="HTTP"} 0.0' in refused()
    guarded.alive_if(lambda: "it hangs")
    told = ask(address, path, WRONG)
    assert "it hangs" not in told[1]
    assert told == ask(address, path, "another-wrong-one-0123456789")
    assert 'relaax_refused_total{port="HTTP"} 2.0' in refused()


def test_health_checks_without_a_token_are_no_guesses(guarded, address):
    guarded.begin()
    assert ask(address, "/healthz") == ask(address, "/readyz") == (200, "ok\n")
    assert 'relaax_refused_total{port="HTTP"} 0.0' in ask(address, "/metrics", MONITOR)[1]


def test_a_right_token_is_accepted_after_many_wrong_ones(guarded, address):
    assert {ask(address, "/metrics", WRONG)[0] for _ in range(30)} == {401}
    status, text = ask(address, "/metrics", MONITOR)
    assert status == 200
    assert 'relaax_refused_total{port="HTTP"} 30.0' in text


@pytest.mark.parametrize("is_guarded", [False, True])
def test_a_caller_that_leaves_before_its_answer_leaves_no_traceback(
    listener, address, tmp_path, capfd, is_guarded
):
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign([], days=1, days_of_authority=1)
    tls = TlsFiles(*(folder.path / name for name in ("server.crt", "server.key")))
    asked, has_left, answers = threading.Event(), threading.Event(), []

    def figures():
        answers.append(threading.current_thread())
        asked.set()
        assert has_left.wait(20)
        yield gauge("size", "Long", 1)

    with (
        access_while(Access(tls=tls) if is_guarded else Access()),
        closing(OperatorPort(listener)) as port,
    ):
        port.show(figures)
        connection = socket.create_connection(address, timeout=20)
        if is_guarded:
            context = ssl.create_default_context(cafile=folder.path / "ca.crt")
            connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert asked.wait(20)
        # The end of the connection comes at once, with nothing before it.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        has_left.set()
        answers[0].join(20)
        assert not answers[0].is_alive()
    assert "Traceback" not in capfd.readouterr().err


def test_without_an_address_nobody_is_answered():
    assert operator_listener(None) is None
    with closing(OperatorPort(None)) as port:
        port.show(list)
        port.begin()
        assert not port.is_open


def test_an_address_in_use_is_named_with_its_option(port, address):
    with pytest.raises(ConfigurationError, match=r"--http-bind: cannot listen at 127.0.0.1:\d+"):
        operator_listener(Address(*address))
