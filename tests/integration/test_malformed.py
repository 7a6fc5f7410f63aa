"""Nonsense on one connection closes that connection, says why, and disturbs nobody else."""

import base64
import io
import json
import socket
import struct
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest
from inference_modes import IN_BOTH_MODES
from processes import Process, Training

from relaax.client.rlx_client import Client

pytestmark = [pytest.mark.integration, IN_BOTH_MODES]


def frame(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload


def message(*parts: object) -> bytes:
    return frame(json.dumps(parts).encode())


def state(value: object) -> str:
    return json.dumps(value)


def array_state(archive: bytes) -> str:
    return state({"b64npz": base64.b64encode(archive).decode()})


def saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, obj=array)
    return file.getvalue()


def zip_bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("obj.npy", bytes(200 * 1024 * 1024))
    return file.getvalue()


START = message("act", state([0.0] * 4))

CASES = {
    "a length of zero": (b"\0\0\0\0", "a frame of 0 bytes was announced"),
    "a length over the limit": (b"\xff\xff\xff\xff", "a frame of 4294967295 bytes was announced"),
    "a frame that breaks off": (b"\x40\0\0\0[", "before the end of a frame"),
    "no JSON": (frame(b"hello"), "this is not JSON: Expecting value"),
    "no UTF-8": (frame(b'["act", "\xff\xfe"]'), "this is not UTF-8"),
    "no array": (frame(b'{"act": 1}'), "a message is a JSON array that starts with a verb"),
    "a wrong verb": (message("jump", 1), "the verb 'jump' is unknown"),
    "too few values": (message("act"), "'act' takes 1 values"),
    "a reward before a state": (message("reward_and_act", 1.0, state([0.0] * 4)), "before act"),
    "a state of another shape": (message("act", state([0.0] * 3)), "a state has shape [3]"),
    "a state that is text": (message("act", state("left")), "not an array of numbers"),
    "a state encoded once": (message("act", [0.0] * 4), "is a string that holds JSON"),
    "a reward that is not a number": (
        START + frame(b'["reward_and_act", NaN, "[0, 0, 0, 0]"]'),
        "NaN is not allowed in JSON",
    ),
    "a state with a NaN": (
        START + frame(b'["reward_and_act", 1, "[NaN, 0, 0, 0]"]'),
        "the state of 'reward_and_act': NaN",
    ),
    "an array of objects": (
        message("act", array_state(saved(np.array([{}, 1, 2, 3], dtype=object)))),
        "not of booleans or real numbers",
    ),
    "an array that is no archive": (
        message("act", array_state(b"PK nonsense")),
        "an npz archive cannot be read",
    ),
    "an archive that unpacks to far more": (
        message("act", array_state(zip_bomb())),
        "an array of 209715200 bytes",
    ),
    "nesting without end": (message("act", "[" * 100_000), "JSON is nested too deeply"),
}


@pytest.fixture(name="server")
def _server(training: Training) -> Process:
    training.start_parameter_server()
    return training.start_rlx_server()


@pytest.fixture(name="neighbour")
def _neighbour(server: Process, training: Training) -> Iterator[Client]:
    """A client in the middle of an episode."""
    with Client(training.rlx_server_url, timeout_s=60) as client:
        client.init([0.0] * 4)
        yield client


def send_and_wait_for_the_end(address: str, data: bytes, half_close: bool) -> None:
    """Send, and read until the server closes."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        try:
            while connection.recv(4096):
                pass
        except ConnectionResetError:
            pass  # closed with our bytes unread: closed all the same


def test_nonsense_closes_its_connection_with_the_reason_and_nobody_else_notices(
    training: Training, server: Process, neighbour: Client
):
    """One test for all: starting the servers takes longer than every case together."""
    rewards = 0
    for name, (data, reason) in CASES.items():
        already_said = len(server.output())
        send_and_wait_for_the_end(
            training.rlx_server_url, data, half_close=name == "a frame that breaks off"
        )
        server.says(rf"(?s)^.{{{already_said}}}.*closing the connection from 127.0.0.1")
        said = server.output()[already_said:]
        warnings = [line for line in said.splitlines() if ":WARNING:" in line]
        assert len(warnings) == 1, (name, said)
        assert reason in warnings[0], (name, warnings[0])
        neighbour.send(1.0, [0.0] * 4)
        rewards += 1
    assert neighbour.reset(1.0) == rewards + 1
    assert "Traceback" not in server.output()
