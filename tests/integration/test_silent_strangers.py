"""Connections to a gRPC port that say nothing: callers, checkpoints and tokens do without them."""

import contextlib
import resource
import socket
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
from operators import figure, is_ready
from processes import COMMANDS, Process, Training, free_port, wait_for

from relaax.net import channel_options
from relaax.parameters import Bridge

pytestmark = pytest.mark.integration

STRANGERS = 1200

SAVED = "relaax_checkpoints_saved_total"

#: A call that takes longer has been held up.
CALL_S = 5.0

#: How long it may take until strangers have been cut off, with some time for a busy machine.
CUT_OFF_S = channel_options.HANDSHAKE_MS / 1000 + 20.0


@pytest.fixture(name="operators")
def _operators() -> str:
    return f"127.0.0.1:{free_port()}"


def start(training: Training, operators: str, limit: str) -> Process:
    """Start a parameter server that saves often, with a limit of open files."""
    server = training.start(
        "relaax-parameter-server",
        ["bash", "-c", f'ulimit {limit} && exec "$@"', "-",
         str(COMMANDS / "relaax-parameter-server"), "--config", str(training.yaml),
         "--http-bind", operators, "--checkpoint-interval", "0.5"],
    )  # fmt: skip
    wait_for(lambda: is_ready(operators), "a parameter server")
    return server


@contextlib.contextmanager
def strangers(training: Training) -> Iterator[list[socket.socket]]:
    """Connections that say nothing; those that the server closes at once are among them."""
    host, _, port = training.parameter_server_url.rpartition(":")
    with contextlib.ExitStack() as opened:
        yield [
            opened.enter_context(socket.create_connection((host, int(port)), 20))
            for _ in range(STRANGERS)
        ]


@contextlib.contextmanager
def called(training: Training) -> Iterator[Bridge]:
    with contextlib.closing(Bridge(training.parameter_server_url, retry_for_s=CUT_OFF_S)) as bridge:
        yield bridge


def seconds_of(call: Callable[[], object]) -> float:
    began_at = time.monotonic()
    call()
    return time.monotonic() - began_at


def is_closed(stranger: socket.socket) -> bool:
    stranger.setblocking(False)
    try:
        while stranger.recv(4096):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def require_saved(bridge: Bridge, operators: str) -> None:
    """Let a step be counted, and wait for the checkpoint of it."""
    before = figure(operators, SAVED)
    bridge.increment_global_t()
    wait_for(lambda: figure(operators, SAVED) > before, "a checkpoint")


def test_a_server_takes_as_many_descriptors_as_there_are_and_closes_who_says_nothing(
    training: Training, operators: str
) -> None:
    server = start(training, operators, "-Sn 1024")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert psutil.Process(server.pid).rlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    with strangers(training) as silent, called(training) as bridge:
        assert seconds_of(bridge.phase) < CALL_S
        require_saved(bridge, operators)
        wait_for(lambda: all(map(is_closed, silent)), "the end of all", CUT_OFF_S)
        assert seconds_of(bridge.phase) < CALL_S
    assert "Too many open files" not in server.output()


def test_where_descriptors_are_few_files_get_theirs_and_callers_are_served_again(
    training: Training, operators: str
) -> None:
    server = start(training, operators, "-n 512")
    with called(training) as early, called(training) as late:
        early.phase()
        with strangers(training):
            require_saved(early, operators)
            assert seconds_of(late.phase) < CUT_OFF_S
            assert seconds_of(early.phase) < CALL_S
    assert "Too many open files" not in server.output()
