"""The echo limit: a server that answers every message at once, with bytes encoded before."""

import contextlib
import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator

import numpy as np
from cells import Cell
from processes import die_with_parent, kill, start_child
from servers import free_address

from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import Welcome
from relaax.protocol.json import ServerCodec


@contextlib.contextmanager
def echo_server(cell: Cell) -> Iterator[str]:
    """Run a server that forks a process for each connection, and yield its address."""
    url = free_address()
    host, _, port = url.rpartition(":")
    listener = socket.create_server((host, int(port)), backlog=1024)
    child = start_child(multiprocessing.get_context("fork"), _serve, listener, cell)
    listener.close()
    try:
        yield url
    finally:
        kill([child])


def _serve(listener: socket.socket, cell: Cell) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent = os.getpid()
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            die_with_parent(parent)
            _answer_at_once(FrameConnection(connection), cell)
            os._exit(0)
        connection.close()


def _answer_at_once(frames: FrameConnection, cell: Cell) -> None:
    actions = np.zeros(cell.environments, np.int64)
    numbers = np.arange(cell.environments)
    flags = np.zeros(cell.environments, np.uint8)
    answer = binary.encode_answers(numbers, flags, actions, np.zeros(0))
    if cell.protocol == 1:
        answer = ServerCodec().encode(actions, np.zeros(0))
    with contextlib.suppress(OSError):
        payload = frames.receive()
        while payload is not None:
            is_hello = binary.is_hello(payload)
            frames.send(binary.encode_welcome(Welcome()) if is_hello else answer)
            payload = frames.receive()
