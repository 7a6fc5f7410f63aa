"""Clients that evaluate, and servers that do not know of that."""

import numpy as np
import pytest

from relaax.client import Client, Failure, VectorClient
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Welcome
from relaax.steps import Evaluation

STATE = np.zeros(2, np.float32)


def promising(evaluation):
    """A server's greeting that promises to learn nothing."""
    return lambda number: binary.encode_welcome(Welcome(evaluate=evaluation))


def both_clients(url, evaluate):
    """A client of one environment and one of two, each with its first observations."""
    yield Client(url, evaluate=evaluate), STATE
    yield VectorClient(url, 2, evaluate=evaluate), np.zeros((2, 2), np.float32)


@pytest.mark.parametrize("evaluate", ["deterministic", "stochastic", Evaluation.STOCHASTIC])
def test_the_hello_asks_for_it(start_recording_server, evaluate):
    server = start_recording_server(greet=promising(Evaluation(evaluate)))
    for client, state in both_clients(server.url, evaluate):
        with client:
            client.init(state)
    assert [hello.evaluate for hello in server.hellos] == [Evaluation(evaluate)] * 2


@pytest.mark.parametrize("welcomed", [None, Evaluation.STOCHASTIC])
def test_a_server_that_does_not_promise_it_gets_no_step(start_recording_server, welcomed):
    server = start_recording_server(greet=promising(welcomed))
    for client, state in both_clients(server.url, "deterministic"):
        with client, pytest.raises(Failure, match="would learn from this one") as refused:
            client.init(state)
        assert refused.value.code == ErrorCode.MISMATCH
        assert refused.value.is_final
    assert server.steps == []


def test_without_it_nothing_is_asked_or_expected(start_recording_server):
    server = start_recording_server(greet=promising(Evaluation.STOCHASTIC))
    with Client(server.url) as client:
        assert client.init(STATE) == 1
    assert [hello.evaluate for hello in server.hellos] == [None]


def test_it_is_never_spoken_of_in_version_1():
    with pytest.raises(ValueError, match="version 1 of the protocol cannot evaluate"):
        Client("localhost:1", protocol=1, evaluate="deterministic")


def test_another_word_is_a_mistake():
    with pytest.raises(ValueError, match="must be deterministic or stochastic, is 'sometimes'"):
        Client("localhost:1", evaluate="sometimes")
