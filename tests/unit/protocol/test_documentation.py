"""docs/protocol.md says what the code does: its byte examples are replayed here."""

import contextlib
import dataclasses
import itertools
import json
import os
import re
import socket
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from served_worker import StoredMetrics, received, serve_batches

from relaax.algorithm_base import BatchAgentBase
from relaax.client import Failure
from relaax.protocol import binary, framing
from relaax.protocol.binary import arrays
from relaax.protocol.binary import messages as binary_messages
from relaax.protocol.json import ClientCodec, ServerCodec, codec, decode_agent, messages, npz
from relaax.steps import EXECUTED, FINAL, MAX_REWARD, START, TERMINATED, TRUNCATED, AgentName, Steps

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
EXAMPLE = re.compile(
    r"^(Client|Server): `([^\n]+)`\n\n```hex\n(.+?)\n```$", re.MULTILINE | re.DOTALL
)


#: Version 2: what a block shows is said in words above it.
EXAMPLE_2 = re.compile(
    r"^((?:Client|Server): [^`\n]+):\n\n```hex\n(.+?)\n```$", re.MULTILINE | re.DOTALL
)


def frame_of(block: str) -> bytes:
    return b"".join(bytes.fromhex(line.partition("|")[0]) for line in block.splitlines())


def replies(payload: bytes) -> bytes:
    answers = answers_in(payload)
    return ServerCodec().encode(answers.actions, answers.scores)


def answers_in(payload: bytes) -> binary.Answers:
    """Return the answers in ``payload``, as a client reads them that has asked for them."""
    flags = TERMINATED if payload.startswith(b'["reset"') else START
    client = ClientCodec()
    client.encode(Steps(np.zeros(1, int), np.uint8([flags]), np.zeros(1), (), ()))
    return client.decode(payload)


EXAMPLES = [(who, text, frame_of(block)) for who, text, block in EXAMPLE.findall(PAGE)]
VERSION_2 = [(text, frame_of(block)) for text, block in EXAMPLE_2.findall(PAGE)]
ARRAY_EXAMPLES = [example for example in EXAMPLES if "b64npz" in example[1]]
AGENT_EXAMPLES = [example for example in EXAMPLES if '"agent"' in example[1]]
PLAIN_EXAMPLES = [each for each in EXAMPLES if each not in ARRAY_EXAMPLES + AGENT_EXAMPLES]


def test_the_page_shows_every_verb_and_all_its_blocks_are_found() -> None:
    assert len(EXAMPLES) == 14
    assert len(EXAMPLES) + len(VERSION_2) == PAGE.count("```hex")
    verbs = {(who, text.split('"')[1]) for who, text, _ in EXAMPLES}
    assert verbs == {("Server", "act"), ("Server", "reset")} | {
        ("Client", verb) for verb in messages.REQUEST_PARSERS
    }


@pytest.mark.parametrize(("who", "text", "frame"), EXAMPLES)
def test_the_bytes_are_the_text_in_a_frame(who: str, text: str, frame: bytes) -> None:
    assert frame == struct.pack("<I", len(text)) + text.encode()


@pytest.mark.parametrize(("who", "text", "frame"), PLAIN_EXAMPLES)
def test_the_code_reads_and_writes_the_bytes(who: str, text: str, frame: bytes) -> None:
    payload = frame[4:]
    if who == "Client":
        request, client = ServerCodec().decode(payload), ClientCodec()
        encode = client.encode if isinstance(request, Steps) else client.encode_metric
        assert encode(request) == payload
    else:
        assert replies(payload) == payload


def test_the_agent_of_the_page_has_the_name_index_and_group_of_the_page() -> None:
    ((_, _, frame),) = AGENT_EXAMPLES
    assert decode_agent(frame[4:]) == AgentName("left", "duel 7", 0)


def test_the_array_of_the_page_has_the_values_of_the_page() -> None:
    ((_, _, frame),) = ARRAY_EXAMPLES
    (action,) = answers_in(frame[4:]).actions
    assert action.dtype == np.float32
    assert action.tolist() == [0.5, -0.25]


def rows_of(section: str, header: str) -> list[list[str]]:
    """Return the cells of the table under ``header`` in a section of the page."""
    after = PAGE[PAGE.index(f"\n{section}\n") :].split(f"\n{header}\n")[1]
    lines = itertools.takewhile(lambda line: line.startswith("|"), after.splitlines()[1:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    rows = rows_of("## Limits", "| what | version 2 | version 1 |")
    limits = {what: (second, first) for what, second, first in rows}
    assert f"{framing.DEFAULT_MAX_FRAME_BYTES:,}" in limits["payload of a frame"][0]
    assert codec.DEFAULT_MAX_ARRAY_BYTES == 64 * 2**20
    assert limits["all arrays of one state, unpacked"][1].startswith("64 MiB")
    seconds = f"{framing.DEFAULT_FRAME_TIMEOUT_S:g} seconds"
    assert limits["time from the first byte of a frame to its last"][0] == seconds
    assert limits["magnitude of a reward"][0] == f"{MAX_REWARD}".replace("+", "")
    assert limits["environments on a connection"][0].startswith(f"{binary.MAX_ENVIRONMENTS:,};")
    assert limits["environments on a connection"][1] == "1"
    named = f"{binary_messages.MAX_AGENTS}, each of 1 to {binary_messages.MAX_AGENT_BYTES} bytes"
    assert limits["agents of an environment, with names"][0] == named
    second, first = limits["dimensions of an array"]
    assert second.startswith(f"{arrays.MAX_DIMENSIONS}, ")
    assert first == str(npz.NPY_MAX_DIMENSIONS)
    assert limits["header of `obj.npy`"][1] == f"{npz.NPY_MAX_HEADER_BYTES} bytes"
    assert limits["texts of a hello"][0] == f"{binary_messages.MAX_TEXT_CHARACTERS} characters"
    for longest in (messages.MAX_METRIC_NAME_BYTES, binary_messages.MAX_NAME_BYTES):
        assert limits["name of a metric"][0] == f"1 to {longest} bytes"


def test_the_limits_in_the_text_are_those_of_the_table() -> None:
    """They are said where they matter, too."""
    assert f"at most {arrays.MAX_DIMENSIONS} |" in PAGE
    assert PAGE.count(f"1 to {binary.MAX_ENVIRONMENTS:,}") == 2
    assert f"{MAX_REWARD}".replace("+", "") + " in magnitude" in PAGE


def test_the_type_codes_of_the_page_are_those_of_the_code() -> None:
    rows = rows_of("### Arrays", "| code | type | code | type | code | type |")
    types = {int(row[i]): row[i + 1] for row in rows for i in (0, 2, 4)}
    kinds = {"b": "boolean", "u": "unsigned", "i": "signed", "f": "float"}
    assert types.keys() == arrays.DTYPES.keys()
    for code, dtype in arrays.DTYPES.items():
        words = types[code].replace(",", "").split()
        assert kinds[dtype.kind] in words
        assert f"{8 * dtype.itemsize}-bit" in words or "byte" in words


BOX = {"type": "Box", "dtype": "float32", "shape": [2]}
ROBOT = {
    "type": "Dict",
    "spaces": {
        "camera": {"type": "Box", "dtype": "uint8", "shape": [2, 2]},
        "arm/angle": {"type": "Box", "dtype": "float32", "shape": [1]},
    },
}
GEARS = {"type": "MultiDiscrete", "nvec": [3, 2]}
TWO = {"type": "Discrete", "n": 2}
NOTHING = np.zeros(0)
PICTURES = np.arange(1, 9, dtype=np.uint8).reshape(2, 2, 2)
FINAL_PICTURE = np.arange(9, 13, dtype=np.uint8).reshape(1, 2, 2)
CUT = TRUNCATED | FINAL | START


def floats(*values: float) -> np.ndarray:
    return np.array([values], np.float32)


def steps(environments: list[int], flags: list[int], rewards: list[float], *blocks: Any) -> Steps:
    observations, finals = blocks if len(blocks) == 2 else (*blocks, ())
    return Steps(
        np.array(environments), np.array(flags, np.uint8), np.array(rewards), observations, finals
    )


def answers(environments: list[int], flags: list[int], actions: list[Any], scores: Any) -> bytes:
    return binary.encode_answers(
        np.array(environments), np.array(flags, np.uint8), np.array(actions), np.array(scores)
    )


#: What the words above each block of version 2 mean, written with this project's own functions.
MEANING = [
    binary.encode_hello(
        binary.Hello(
            "00112233445566778899aabbccddeeff", "Corridor", 1, BOX, {"type": "Discrete", "n": 2}
        )
    ),
    binary.encode_welcome(
        binary.Welcome({"type": "Box", "shape": [2]}, {"type": "Discrete", "n": 2})
    ),
    binary.encode_steps(steps([0], [START], [0], floats(0.5, -2))),
    answers([0], [START], [1], NOTHING),
    binary.encode_steps(steps([0], [0], [1], floats(0.25, -1))),
    answers([0], [0], [0], NOTHING),
    binary.encode_steps(steps([0], [TERMINATED], [-0.5], ())),
    answers([0], [TERMINATED], [], [0.5]),
    binary.encode_steps(steps([0, 2], [0, CUT], [0, 3], PICTURES, FINAL_PICTURE)),
    answers([0, 2], [0, CUT], [4, 5], [7.0]),
    binary.encode_metric(binary.Metric("speed", 2.5)),
    binary.encode_metric(binary.Metric("speed", 2.5, 7.0)),
    binary.encode_error(binary.ErrorCode.GO_ELSEWHERE, "connect again"),
    binary.encode_hello(binary.Hello("", "Robot", 1, ROBOT, GEARS)),
    binary.encode_welcome(
        binary.Welcome(
            {
                "type": "Dict",
                "spaces": {
                    "camera": {"type": "Box", "shape": [2, 2]},
                    "arm/angle": {"type": "Box", "shape": [1]},
                },
            },
            GEARS,
        )
    ),
    binary.encode_steps(
        steps(
            [0], [START], [0], {"camera": PICTURES[:1], "arm/angle": np.array([[0.5]], np.float32)}
        )
    ),
    answers([0], [START], [[2, 0]], NOTHING),
    binary.encode_steps(
        dataclasses.replace(
            steps([0], [EXECUTED], [0.5], floats(0.75, -3)), executed=np.array([1], np.int64)
        )
    ),
    answers([0], [0], [1], NOTHING),
    binary.encode_hello(binary.Hello("", "Duel", 2, None, TWO, agents=("left", "right"))),
    binary.encode_welcome(binary.Welcome({"type": "Box", "shape": [1]}, TWO, agents=True)),
    binary.encode_steps(steps([0], [START], [0], floats(0.5))),
    answers([0], [START], [1], NOTHING),
    binary.encode_steps(steps([1], [START], [0], floats(0.25))),
    answers([1], [START], [0], NOTHING),
    binary.encode_steps(steps([1, 0], [TERMINATED, TERMINATED | START], [-1, 1], floats(0.75))),
    answers([1, 0], [TERMINATED, TERMINATED | START], [0], [-1.0, 1.0]),
]


@pytest.mark.parametrize(
    ("example", "payload"),
    list(zip(VERSION_2, MEANING, strict=True)),
    ids=lambda value: str(value)[:40],
)
def test_the_code_writes_the_bytes_of_version_2(example: tuple[str, bytes], payload: bytes) -> None:
    assert example[1] == struct.pack("<I", len(payload)) + payload


def test_the_code_reads_the_bytes_of_version_2() -> None:
    payloads = [frame[4:] for _, frame in VERSION_2]
    hello = binary.decode_hello(payloads[0])
    assert (hello.environment, hello.environments, hello.observation_space) == ("Corridor", 1, BOX)
    assert binary.decode_welcome(payloads[1]).action_space == {"type": "Discrete", "n": 2}
    first = binary.decode_steps(payloads[2], 1)
    assert (first.flags.tolist(), np.asarray(first.observations).tolist()) == ([START], [[0.5, -2]])
    assert binary.decode_answers(payloads[3]).actions.tolist() == [1]
    assert binary.decode_steps(payloads[4], 1).rewards.tolist() == [1.0]
    last = binary.decode_steps(payloads[6], 1)
    assert (last.flags.tolist(), last.rewards.tolist()) == ([TERMINATED], [-0.5])
    assert binary.decode_answers(payloads[7]).scores.tolist() == [0.5]
    pictures = binary.decode_steps(payloads[8], 3)
    assert (pictures.environments.tolist(), pictures.flags.tolist()) == ([0, 2], [0, CUT])
    np.testing.assert_array_equal(pictures.observations, PICTURES)
    np.testing.assert_array_equal(pictures.finals, FINAL_PICTURE)
    both = binary.decode_answers(payloads[9])
    assert (both.actions.tolist(), both.scores.tolist()) == ([4, 5], [7.0])
    assert binary.decode_metric(payloads[11]) == binary.Metric("speed", 2.5, 7.0)
    with pytest.raises(binary.Error, match="connect again") as said:
        binary.raise_if_error(payloads[12])
    assert said.value.code == binary.ErrorCode.GO_ELSEWHERE


def test_the_codes_of_errors_on_the_page_are_those_of_the_code() -> None:
    rows = rows_of("### Errors", "| code | means | connect again? |")
    assert {int(code): means for code, means, _ in rows} == {
        binary.ErrorCode.PROTOCOL: "a message broke a rule of this page",
        binary.ErrorCode.MISMATCH: (
            "spaces, observations or the number of environments do not fit the server's "
            "configuration"
        ),
        binary.ErrorCode.GO_ELSEWHERE: (
            "go elsewhere: `--timeout` has passed, the server stops, has no room for more "
            "connections, or does not look at tokens of this address for a while; or the token was "
            "renewed or deleted: show your newest one"
        ),
        binary.ErrorCode.SERVER: "the server failed",
        binary.ErrorCode.VERSION: "this version is not spoken here",
        binary.ErrorCode.TRAINING_IS_OVER: "the training is over",
        binary.ErrorCode.ALGORITHM: (
            "the algorithm raised an exception, or returned actions that do not fit its own "
            "action space: its code must change"
        ),
        binary.ErrorCode.ACCESS: (
            "the client has not proved that it may connect: its token or its certificate is "
            "missing, or is not accepted"
        ),
    }
    assert len(rows) == len(binary.ErrorCode)
    final = {int(code) for code, _, again in rows if again.startswith("no")}
    assert final == {code for code in binary.ErrorCode if Failure("", code).is_final}


def test_the_defaults_of_a_hello_are_those_of_the_code() -> None:
    rows = rows_of("### Hello and welcome", "| member of the object | what | without it |")
    defaults = {name.strip("`"): json.loads(default.strip("`")) for name, _, default in rows}
    assert dataclasses.asdict(binary.decode_hello(b"\x01RLX\x02\0\0\0{}")) == defaults


class TestAServerSaysWhatThePageSays:
    """The client's examples, given to a server, are answered by the server's examples."""

    def test_example_1(self) -> None:
        frames = [frame for _, frame in VERSION_2[:8]]
        assert talk(frames[::2], ScriptedAgents([[1], [0], []])) == frames[1::2]

    def test_example_2(self) -> None:
        """It is taken from the middle of a conversation: what came before is said here."""
        pictures = np.zeros((3, 2, 2), np.uint8)
        before = [
            binary.encode_hello(binary.Hello("", "", environments=3)),
            binary.encode_steps(steps([0, 1, 2], [START] * 3, [0, 0, 0], pictures)),
            binary.encode_steps(steps([0, 2], [0, 0], [1, 4], pictures[:2])),
        ]
        (_, asked), (_, answered) = VERSION_2[8:10]
        agents = ScriptedAgents([[0, 0, 0], [0, 0], [4, 5]])
        received = talk([*map(framed, before), asked], agents, ANY_SPACES)
        assert received[3] == answered
        np.testing.assert_array_equal(agents.finals[2], FINAL_PICTURE)

    def test_example_3(self) -> None:
        (_, plain), (_, with_x), (_, error) = VERSION_2[10:13]
        agents = ScriptedAgents([])
        talk([VERSION_2[0][1], plain, with_x], agents)
        assert agents.stored.values == [("client/speed", 2.5, None), ("client/speed", 2.5, 7.0)]
        said = binary.encode_error(binary.ErrorCode.GO_ELSEWHERE, "connect again")
        assert framed(said) == error

    def test_example_4(self) -> None:
        agents = ScriptedAgents([[[2, 0]]])
        frames = [frame for _, frame in VERSION_2[13:17]]
        config = SimpleNamespace(
            observation_space=lambda: {
                "type": "Dict",
                "spaces": {
                    "camera": {"type": "Box", "shape": [2, 2]},
                    "arm/angle": {"type": "Box", "shape": [1]},
                },
            },
            action_space=lambda: {"type": "MultiDiscrete", "nvec": [3, 2]},
        )
        assert talk(frames[::2], agents, config) == frames[1::2]
        assert {name: array.tolist() for name, array in agents.states[0].items()} == {
            "camera": [[[1, 2], [3, 4]]],
            "arm/angle": [[0.5]],
        }

    def test_example_5(self) -> None:
        """It goes on where the example 1 has given the action 0."""
        agents = ScriptedAgents([[1], [0], [1]])
        before = [frame for _, frame in VERSION_2[:6]]
        (_, asked), (_, answered) = VERSION_2[17:19]
        assert talk([*before[::2], asked], agents) == [*before[1::2], answered]
        assert [executed.tolist() for executed in agents.executed] == [[], [], [1]]

    def test_example_6(self) -> None:
        agents = ScriptedAgents([[1], [0], [0]])
        frames = [frame for _, frame in VERSION_2[19:]]
        config = SimpleNamespace(
            observation_space=lambda: {"type": "Box", "shape": [1]}, action_space=lambda: TWO
        )
        assert talk(frames[::2], agents, config) == frames[1::2]
        assert [[agent.name for agent in each] for each in agents.names] == [
            ["left"],
            ["right"],
            ["left"],
        ]


class ScriptedAgents(BatchAgentBase):
    """A batch agent whose actions are given beforehand; keeps metrics and observations."""

    def __init__(self, actions: list[list[Any]]) -> None:
        self._actions = iter(actions)
        self.stored = StoredMetrics()
        self.states: list[Any] = []
        self.finals: list[Any] = []
        self.executed: list[Any] = []
        self.names: list[Any] = []

    def open(self, slots: Any) -> None:
        pass

    def close_slots(self, slots: Any) -> None:
        pass

    def check(self, states: Any) -> Any:
        return states

    def check_executed(self, actions: Any) -> Any:
        return actions

    def act(self, transitions: Any, states: Any, finals: Any) -> list[int]:
        self.executed.append(transitions.executed_actions)
        self.names.append(transitions.agents)
        self.states.append(states)
        self.finals.append(finals)
        return next(self._actions)

    def close(self) -> None:
        pass


ANY_SPACES = SimpleNamespace(observation_space=lambda: None, action_space=lambda: None)

#: The spaces of the page's welcome.
CONFIG = SimpleNamespace(
    observation_space=lambda: {"type": "Box", "shape": [2]},
    action_space=lambda: {"type": "Discrete", "n": 2},
)


def framed(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload


def talk(frames: list[bytes], agents: ScriptedAgents, config: Any = CONFIG) -> list[bytes]:
    """Return the frames that a server answers these with, before it closes."""
    with contextlib.closing(serve_batches(agents, config=config)) as served:
        agents.stored = served.stored
        client = served.connect()
        sock = socket.socket(fileno=os.dup(client.fileno()))
        with sock:
            sock.sendall(b"".join(frames))
            sock.shutdown(socket.SHUT_WR)
        return [framed(payload) for payload in iter(lambda: received(served, client), None)]
