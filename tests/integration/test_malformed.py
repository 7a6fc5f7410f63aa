"""Nonsense on one connection closes that connection, says why, and disturbs nobody else."""

import base64
import io
import json
import re
import socket
import struct
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest
from processes import Process, Training
from tls_hello import client_hello
from worker_modes import IN_BOTH_MODES

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


def hello(body: bytes, version: int = 2) -> bytes:
    return frame(b"\x01RLX" + struct.pack("<HH", version, 0) + body)


def steps(flags: int, reward: float, *observation: float) -> bytes:
    """A report of environment 0 in version 2."""
    head = struct.pack("<BBHHBd", 3, 0, 1, 0, flags, reward)
    count = len(observation)
    array = bytes([1, 0, 11, 2]) + struct.pack(f"<II{count}f", 1, count, *observation)
    return frame(head + array + b"\0")


def named_steps(*names: bytes) -> bytes:
    """The start of an episode with an observation of one byte by each of these names."""
    head = struct.pack("<BBHHBd", 3, 0, 1, 0, 1, 0.0)
    arrays = b"".join(
        bytes([len(name)]) + name + bytes([2, 1]) + struct.pack("<I", 1) + b"\7" for name in names
    )
    return frame(head + bytes([len(names)]) + arrays + b"\0")


def zip_bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("obj.npy", bytes(32 * 1024 * 1024))
    return file.getvalue()


START = message("act", state([0.0] * 4))

CASES = {
    "a length of zero": (b"\0\0\0\0", "a frame of 0 bytes was announced"),
    "a length over the limit": (b"\xff\xff\xff\xff", "a frame of 4294967295 bytes was announced"),
    "TLS": (client_hello(), "the peer speaks TLS instead of RLX"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "the peer speaks HTTP instead of RLX"),
    "gRPC": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "the peer speaks HTTP/2 (gRPC) instead of RLX"),
    "SSH": (b"SSH-2.0-OpenSSH_9.2\r\n", "the peer speaks SSH instead of RLX"),
    "a frame that breaks off": (b"\x40\0\0\0[", "before the end of a frame"),
    "no JSON": (
        frame(b"hello"),
        "its first message begins with b'hell', unlike any message of RLX",
    ),
    "no JSON behind a bracket": (frame(b"[hello"), "this is not JSON: Expecting value"),
    "no UTF-8": (frame(b'["act", "\xff\xfe"]'), "this is not UTF-8"),
    "no array": (frame(b'{"act": 1}'), "unlike any message of RLX"),
    "no verb": (frame(b"[1, 2]"), "a message is a JSON array that starts with a verb"),
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
        "an array of 33554432 bytes",
    ),
    "nesting without end": (message("act", "[" * 50_000), "JSON is nested too deeply"),
    "a state of 500 levels": (
        message("act", "[" * 500 + "]" * 500),
        "JSON is nested too deeply: at most 64 levels",
    ),
    "an object of 500 levels": (
        message("act", '{"a":' * 500 + "1" + "}" * 500),
        "JSON is nested too deeply: at most 64 levels",
    ),
    "a reward beyond 32 bits": (
        START + message("reward_and_act", 1e39, state([0.0] * 4)),
        "not finite as a 32-bit float",
    ),
}

#: In version 2: what is sent, the reason, and the code that comes before the close.
CASES_OF_VERSION_2 = {
    "a hello in version 3": (hello(b"{}", version=3), "version 3 was asked for", 5),
    "a hello that breaks off": (frame(b"\x01RLX\x02"), "this is no hello", 1),
    "a hello without environments": (hello(b'{"environments": 0}'), "1 to 65535, not 0", 1),
    "a hello with half a character": (hello(b'{"environment": "\\ud800"}'), "is a string", 1),
    "a hello of other spaces": (
        hello(b'{"observation_space": {"type": "Box", "shape": [3]}}'),
        "the observations are",
        2,
    ),
    "an observation of another shape": (hello(b"{}") + steps(1, 0, 0, 0, 0), "has shape [3]", 2),
    "a step before the start": (
        hello(b"{}") + steps(0, 1, 0, 0, 0, 0),
        "no episode is going on",
        1,
    ),
    "two observations of one name": (
        hello(b"{}") + named_steps(b"a", b"a"),
        "two arrays are named 'a'",
        1,
    ),
    "an observation without a name among others": (
        hello(b"{}") + named_steps(b"a", b""),
        "an array among several has no name",
        1,
    ),
    "a hello of 500 levels": (
        hello(b'{"action_space": ' + b'{"a":' * 500 + b"1" + b"}" * 501),
        "JSON is nested too deeply",
        1,
    ),
    "a name that is no text": (hello(b"{}") + named_steps(b"\xff"), "is not UTF-8", 1),
    "a hello of observations by name": (
        hello(b'{"observation_space": {"type": "Dict", "spaces": {"a": {"type": "Box"}}}}'),
        "the observations are",
        2,
    ),
    "a reward beyond 32 bits, in binary": (
        hello(b"{}") + steps(1, 0, 0, 0, 0, 0) + steps(0, 1e39, 0, 0, 0, 0),
        "a reward is not finite as a 32-bit float",
        1,
    ),
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


def send_and_wait_for_the_end(address: str, data: bytes, half_close: bool) -> bytes:
    """Send, and return what comes until the server closes."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while chunk := connection.recv(4096):
                received += chunk
        except ConnectionResetError:
            pass  # closed with our bytes unread: closed all the same
        return received


def last_frame(received: bytes) -> bytes:
    """Return the payload of the last of several frames; nothing where there is none."""
    payload = b""
    while received:
        end = 4 + struct.unpack_from("<I", received)[0]
        payload, received = received[4:end], received[end:]
    return payload


@pytest.mark.parametrize("version", [1, 2])
def test_nonsense_closes_its_connection_with_the_reason_and_nobody_else_notices(
    training: Training, server: Process, neighbour: Client, version: int
):
    """One test for all of a version: starting the servers takes longer than every case together.

    Of both together the log would not have each any more.
    """
    rewards = 0
    of_version_1 = {name: (*case, None) for name, case in CASES.items()}
    for name, (data, reason, code) in (of_version_1, CASES_OF_VERSION_2)[version - 1].items():
        already_said = len(server.output())
        received = send_and_wait_for_the_end(
            training.rlx_server_url, data, half_close=name == "a frame that breaks off"
        )
        if code is not None:
            kind, _, told = struct.unpack_from("<BBH", last_frame(received))
            assert (kind, told) == (6, code), name
            assert reason.encode() in last_frame(received), name
        server.says(rf"(?s)^.{{{already_said}}}.*closing the connection from 127.0.0.1")
        said = server.output()[already_said:]
        # What is doubtful of an environment is said beside it, once for a server.
        warnings = [line for line in said.splitlines() if re.search(":WARNING:(?!doubtful)", line)]
        assert len(warnings) == 1, (name, said)
        assert reason in warnings[0], (name, warnings[0])
        neighbour.send(1.0, [0.0] * 4)
        rewards += 1
    assert neighbour.reset(1.0) == rewards + 1
    assert "Traceback" not in server.output()
