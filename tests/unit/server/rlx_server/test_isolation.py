"""What one client does wrong ends its own connection, and changes nothing for all others."""

import re
import sys

import numpy as np
import pytest
from json_requests import Act, RewardAndAct, RewardAndReset, encode_request
from served_worker import BinaryClient, JsonClient, Oracle, encoded

from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED

HUGE = sys.float_info.max

#: What a client with two environments, of which the first plays, sends; and what it is told.
FAULTS = {
    "wrong shape": (
        encoded([0], [0], [1], np.zeros((1, 2), np.float32)),
        ErrorCode.MISMATCH, r"a state has shape \[2\], not \[1\]",
    ),
    "not a number": (
        encoded([0], [0], [1], [np.nan]), ErrorCode.MISMATCH, "a state is not a number",
    ),
    "last state not a number": (
        encoded([0], [TRUNCATED | FINAL | START], [1], [1], [np.nan]),
        ErrorCode.MISMATCH, "a state is not a number",
    ),
    "another type": (
        encoded([0], [0], [1], np.zeros((1, 1), np.uint8)),
        ErrorCode.MISMATCH,
        r"observations are uint8\[1\], those of the other environments here are float32",
    ),
    "no episode": (
        encoded([0, 1], [0, 0], [1, 1], [1, 1]),
        ErrorCode.PROTOCOL, "no episode is going on in environment 1",
    ),
    "an end without an episode": (
        encoded([1], [TERMINATED], [1]),
        ErrorCode.PROTOCOL, "no episode is going on in environment 1",
    ),
    "infinite score": (
        encoded([0], [TERMINATED], [HUGE]),
        ErrorCode.PROTOCOL, "the sum of an episode's rewards is not finite",
    ),
    "reward not a number": (
        encoded([0], [0], [np.nan], [1]), ErrorCode.PROTOCOL, "a reward is not finite",
    ),
    "unknown environment": (
        encoded([2], [START], [0], [1]), ErrorCode.PROTOCOL, "environment 2 reports",
    ),
    "environment twice": (
        encoded([0, 0], [0, 0], [1, 1], [1, 1]), ErrorCode.PROTOCOL, "twice in one message",
    ),
    "flags": (encoded([0], [64], [1], [1]), ErrorCode.PROTOCOL, "do not go together"),
    "cut off": (encoded([0], [0], [1], [1])[:-9], ErrorCode.PROTOCOL, "announced|breaks off"),
    "another hello": (b"\x01RLX\x02\0\0\0{}", ErrorCode.PROTOCOL, "a message of kind 1 came"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _rewards_up_to_the_largest_float(monkeypatch):
    """No sum of the rewards that are allowed is infinite, in any time that can be waited for."""
    monkeypatch.setattr("relaax.steps.MAX_REWARD", HUGE)


class Play:
    """Three clients that play the same, whatever a fourth one does."""

    def __init__(self, serve, bad=None):
        self.oracle = Oracle()
        self.served = served = serve(self.oracle)
        self.first, self.single, self.many = (
            JsonClient(served), BinaryClient(served), BinaryClient(served, 3),
        )  # fmt: skip
        self.answers = []
        self._begin()
        self.bad = bad and bad(served)
        self._go_on()
        self.good_slots = range(5)

    def _begin(self):
        self.first.tell(Act([1]))
        self.single.tell([0], [START], [0], [2])
        self.many.tell([2, 0, 1], [START] * 3, [0] * 3, [3, 4, 5])
        self.served.turn(2)
        self._read()

    def _go_on(self):
        """In the turn where the fourth client's message is handled, everything else happens."""
        self.first.tell(RewardAndReset(2.0))
        self.single.tell([0], [0], [0.5], [6])
        self.many.tell(
            [0, 1, 2], [TERMINATED | START, TRUNCATED | FINAL, 0], [4, 5, 6], [7, 8], [9]
        )
        self.served.turn()
        self._read()
        self.single.tell([0], [TERMINATED], [0.25])
        self.many.tell([1], [START], [0], [1])
        self.served.turn()
        self._read(of_first=False)

    def _read(self, of_first=True):
        clients = (self.first, self.single, self.many) if of_first else (self.single, self.many)
        self.answers += [client.receive() for client in clients]

    @property
    def learnt(self):
        """Return what was learnt from the good clients, each report once."""
        return {slot: self.oracle.reported[slot] for slot in self.good_slots}


def faulty_client(payload):
    """Return what connects a client that plays, and then sends ``payload`` beside others."""

    def connect(served):
        client = BinaryClient(served, environments=2)
        client.ask([0], [START], [0], [1])
        client.ask([0], [0], [HUGE], [1])
        client.connection.send(payload)
        return client

    return connect


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_closes_its_connection_and_others_are_answered_and_counted_once(serve, fault):
    payload, code, text = FAULTS[fault]
    alone, play = Play(serve), Play(serve, faulty_client(payload))
    assert play.answers == alone.answers
    assert play.learnt == alone.learnt
    rewards = [
        [y for y in played.served.stored.of("episode/reward") if y < HUGE]
        for played in (alone, play)
    ]
    assert rewards[0] == rewards[1] == [2.0, 4.0, 5.0, 0.75]
    with pytest.raises(binary.Error, match=text) as said:
        play.bad.answer()
    assert said.value.code == code
    assert play.bad.receive() is None
    assert play.oracle.slots == set(play.good_slots)
    assert play.served.load == 5


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([Act([1]), RewardAndAct(1.0, [1, 2])], r"a state has shape \[2\]"),
        ([Act(["one"])], "no number"),
        ([RewardAndReset(1.0)], "no episode is going on in environment 0"),
        ([Act([1]), RewardAndAct(HUGE, [1]), RewardAndReset(HUGE)], "is not finite"),
    ],
)
def test_a_fault_in_version_1_closes_its_connection_without_a_word(serve, messages, reason, caplog):
    def connect(served):
        client = JsonClient(served)
        for message in messages[:-1]:
            client.tell(message)
            assert client.receive() is not None
        client.connection.send(encode_request(messages[-1]))
        return client

    alone, play = Play(serve), Play(serve, connect)
    assert play.answers == alone.answers
    assert play.learnt == alone.learnt
    assert play.bad.receive() is None
    assert play.oracle.slots == set(play.good_slots)
    assert re.search(f"closing the connection from a test: .*{reason}", caplog.text)


def test_the_first_observations_of_two_connections_are_of_one_type(serve, oracle):
    """They come in one turn, before the type is known: one of them is refused, not converted."""
    served = serve()
    clients = [BinaryClient(served), BinaryClient(served)]
    for client, dtype in zip(clients, (np.uint8, np.float32), strict=True):
        client.tell([0], [START], [0], np.ones((1, 1), dtype))
    served.turn()
    answered, refused = [], []
    for client in clients:
        try:
            answered.append(client.answer().actions[0, 1])
        except binary.Error as error:
            refused.append(error.text)
    assert (answered, oracle.sizes) == ([1], [1])
    assert "those of the other environments here are" in refused[0]


def test_another_type_of_observation_may_come_when_no_other_connection_is_left(serve):
    served = serve()
    floats = BinaryClient(served)
    floats.ask([0], [START], [0], [1])
    pictures = BinaryClient(served)
    pictures.tell([0], [START], [0], np.ones((1, 1), np.uint8))
    with pytest.raises(binary.Error, match=r"are uint8\[1\], those of the other .* are float32"):
        pictures.answer()
    floats.close()
    served.turn_until(lambda: served.load == 0)
    answer = BinaryClient(served).ask([0], [START], [0], np.ones((1, 1), np.uint8))
    assert answer.actions.tolist() == [[0, 1]]


def test_an_answer_that_no_frame_holds_closes_its_connection_alone(serve):
    served = serve(max_frame_bytes=900)
    good = BinaryClient(served)
    many = BinaryClient(served, environments=50)
    many.tell(range(50), [START] * 50, [0] * 50, np.zeros((50, 1), np.uint8))
    with pytest.raises(binary.Error, match="an answer cannot be sent: a frame holds 1 to 900"):
        many.answer()
    assert good.ask([0], [START], [0], np.zeros((1, 1), np.uint8)).actions.tolist() == [[0, 0]]


def test_an_error_that_no_frame_holds_closes_the_connection_without_it(serve):
    served = serve(max_frame_bytes=20)
    bad = served.connect()
    bad.send(b"\x01RLX\x02\0\0\0[")
    served.turn_until(lambda: bad.has_message or _is_closed(bad))
    assert served.load == 0


def _is_closed(connection):
    try:
        connection.receive_now()
    except OSError:
        return True
    return False
