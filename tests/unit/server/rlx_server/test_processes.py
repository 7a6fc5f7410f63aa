"""What a worker says to a client that cannot be served, over a real socket pair."""

import contextlib
import signal
import socket
from types import SimpleNamespace

import pytest

from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode
from relaax.server.rlx_server.children import COMPUTE_IS_GONE, END_OF_TRAINING, STOP
from relaax.server.rlx_server.processes import WorkerSettings, run_worker

HEAD = b"\x01RLX"


@pytest.fixture(autouse=True)
def _same_signals_afterwards():
    before = {
        number: signal.getsignal(number) for number in (STOP, END_OF_TRAINING, COMPUTE_IS_GONE)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def answer_to(first):
    """Return the payload that answers the first message of a connection; None for a close."""
    settings = WorkerSettings(
        algorithm=None, config=SimpleNamespace(), parameter_server="", timeout_s=None,
        max_frame_bytes=2**20, max_environments=64,
    )  # fmt: skip
    ours, theirs = socket.socketpair()
    with contextlib.closing(FrameConnection(ours)) as client, theirs:
        client.send(first)
        assert run_worker(settings, 0, theirs, "a test", compute=None) == 0
        return client.receive(timeout_s=10)


@pytest.mark.parametrize(
    ("hello", "code", "reason"),
    [
        (HEAD + b"\x03\0\0\0{}", ErrorCode.VERSION, "version 3 was asked for"),
        (HEAD + b'\x02\0\0\0{"environments": 0}', ErrorCode.PROTOCOL, "1 to 65535, not 0"),
        (HEAD + b"\x02\0\0\0[", ErrorCode.PROTOCOL, "a hello is not JSON"),
        (HEAD, ErrorCode.PROTOCOL, "this is no hello"),
        (
            HEAD + b'\x02\0\0\0{"environment": "\\ud800"}',
            ErrorCode.PROTOCOL,
            "environment is a string",
        ),
        (
            HEAD + b'\x02\0\0\0{"environments": 65}',
            ErrorCode.MISMATCH,
            "may carry 64 environments .--max-environments of the RLX server., this one would",
        ),
    ],
)
def test_a_hello_that_cannot_be_welcomed_is_answered_with_the_reason(hello, code, reason):
    with pytest.raises(binary.Error, match=reason) as said:
        binary.raise_if_error(answer_to(hello))
    assert said.value.code == code
