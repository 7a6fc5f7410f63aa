"""How large messages may be where the operator does not say: any observation fits."""

import contextlib
import json
import socket

import numpy as np
import pytest
from served_worker import BinaryClient, Oracle, encoded, serve_batches

from relaax.errors import ProtocolError
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES
from relaax.protocol.json.codec import encode
from relaax.server.rlx_server.limits import message_limit
from relaax.spaces import box, discrete
from relaax.steps import START, TERMINATED

PICTURE = box("uint8", (210, 160, 3))
POSES = {
    "type": "Dict",
    "spaces": {"camera": PICTURE, "arm": {"type": "Tuple", "spaces": [box("float64", (7,))] * 2}},
}


class Config:
    """What a worker asks of an algorithm's configuration."""

    def __init__(self, space):
        self._space = space

    def observation_space(self):
        return self._space

    def action_space(self):
        return None


@pytest.mark.parametrize(
    ("space", "environments", "arrays", "numbers"),
    [
        (box("float32", (4,)), 1, 1, 4),
        (box("float32", (4,)), 300, 1, 4),
        (PICTURE, 2, 1, 210 * 160 * 3),
        (POSES, 5, 3, 210 * 160 * 3 + 14),
        (discrete(6), 1, 1, 1),
    ],
)
def test_it_is_the_least_and_so_much_for_each_number_and_array(
    space, environments, arrays, numbers
):
    expected = 65536 + environments * (1024 + 1024 * arrays + 32 * numbers)
    assert message_limit(space, environments) == expected


@pytest.mark.parametrize(
    "space",
    [None, {"type": "Text"}, {"type": "Dict", "spaces": {"a": box("float32", (4,)), "b": {}}}],
)
def test_where_an_observation_is_not_known_it_is_that_of_the_protocol(space):
    assert message_limit(space, 1) == DEFAULT_MAX_FRAME_BYTES


def test_nothing_exceeds_the_limit_of_the_protocol():
    assert message_limit(PICTURE, 1024) == DEFAULT_MAX_FRAME_BYTES


@pytest.mark.parametrize("environments", [1, 64])
def test_the_largest_message_of_version_2_fits(environments):
    """All episodes end and begin, and observations are as wide as numbers are."""
    states = np.full((environments, 84, 84), 1 / 3)
    payload = encoded(
        range(environments), [START | TERMINATED] * environments, [1.0] * environments,
        states, states,
    )  # fmt: skip
    assert len(payload) <= message_limit(box("uint8", (84, 84)), environments)


def test_a_state_of_version_1_fits_as_text_and_as_an_array():
    state = -1 / 3 * 10.0 ** np.random.default_rng(1).integers(-300, 300, (84, 84))
    for written in (state, state.tolist()):
        text = json.dumps(["act", encode(written)])
        assert len(text) <= message_limit(box("float32", (84, 84)), 1)


def test_a_worker_refuses_messages_larger_than_its_observations_need_and_names_the_option():
    space = box("float32", (4,))
    served = serve_batches(Oracle(), config=Config(space), max_frame_bytes=None)
    for environments in (1, 100):
        client = BinaryClient(served, environments)
        limit = message_limit(space, environments)
        client.connection.sock.send((limit + 1).to_bytes(4, "little"))
        with pytest.raises(binary.Error) as said:
            client.answer()
        assert said.value.code == ErrorCode.PROTOCOL
        assert said.value.text == (
            f"a frame of {limit + 1} bytes was announced; 1 to {limit} are allowed "
            "(--max-frame-bytes; by default enough for the configured observations)"
        )
    served.close()


def test_an_operators_limit_holds_for_all_connections():
    served = serve_batches(Oracle(), config=Config(PICTURE), max_frame_bytes=1000)
    client = BinaryClient(served, environments=100)
    client.connection.sock.send((1001).to_bytes(4, "little"))
    with pytest.raises(binary.Error, match="1001 bytes was announced; 1 to 1000 are allowed"):
        client.answer()
    served.close()


def test_answers_may_be_larger_than_received_messages():
    """An action may have more numbers than an observation."""
    ours, theirs = socket.socketpair()
    client = FrameConnection(ours)
    with contextlib.closing(client), contextlib.closing(theirs):
        server = FrameConnection(theirs, max_received_bytes=10)
        server.send_now(bytes(1000))
        assert client.receive_now() == bytes(1000)
        client.send_now(bytes(11))
        with pytest.raises(ProtocolError, match="a frame of 11 bytes was announced; 1 to 10 are"):
            server.receive_now()
