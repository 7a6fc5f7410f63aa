"""The HTTP port for operators answers what load balancers and Prometheus ask."""

import socket
from contextlib import closing
from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from relaax.address import Address
from relaax.errors import ConfigurationError
from relaax.server.common.operators import OperatorPort, counter, gauge, operator_listener
from relaax.server.common.operators.families import counters, gauges, histogram


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


def ask(address, path):
    connection = HTTPConnection(*address, timeout=20)
    with closing(connection):
        connection.request("GET", path)
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


def test_a_histogram_counts_what_lies_within_each_bound(port, address):
    port.show(lambda: [histogram("wait_seconds", "Wait", (0.1, 1.0), [4, 2, 1], 9.5)])
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


def test_those_who_ask_nothing_delay_nobody(port, address):
    silent = [socket.create_connection(address) for _ in range(5)]
    assert ask(address, "/healthz") == (200, "ok\n")
    for client in silent:
        client.close()


def test_without_an_address_nobody_is_answered():
    assert operator_listener(None) is None
    with closing(OperatorPort(None)) as port:
        port.show(list)
        port.begin()
        assert not port.is_open


def test_an_address_in_use_is_named_with_its_option(port, address):
    with pytest.raises(ConfigurationError, match=r"--http-bind: cannot listen at 127.0.0.1:\d+"):
        operator_listener(Address(*address))
