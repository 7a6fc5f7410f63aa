"""A server's short cuts for steps and answers change nothing: not a byte, and no number."""

import numpy as np
import pytest

from relaax.errors import ProtocolError
from relaax.protocol.binary import Answers, decode_answers, decode_steps, encode_answers
from relaax.protocol.binary import encode_steps as encoded
from relaax.protocol.binary.codec import ServerCodec
from relaax.steps import ENDED, FINAL, START, TERMINATED, TRUNCATED, Steps, wants_action

CUT = TRUNCATED | FINAL
FLAGS = (START, TERMINATED, TERMINATED | START, TERMINATED | FINAL, CUT, CUT | START)

#: What is observed, and how actions look, in one conversation or the other.
KINDS = [
    (np.dtype("<f4"), (4,), np.dtype("<i8"), ()),
    (np.dtype("u1"), (3, 2), np.dtype("<f4"), (6,)),
    (np.dtype("<f8"), (), np.dtype("<f2"), (1,)),
    (np.dtype("?"), (2,), np.dtype(">i4"), ()),
    (np.dtype("<f4"), (0,), np.dtype("<i8"), (2,)),
]


def plain(environments, observations, rewards=None):
    """Return steps without any flag."""
    count = len(environments)
    rewards = np.arange(count) + 0.5 if rewards is None else np.array(rewards, float)
    return Steps(
        np.array(environments, np.int64), np.zeros(count, np.uint8), rewards, observations, ()
    )


def floats(*values):
    return np.array(values, np.float32).reshape(-1, 1)


def assert_equal(found, expected):
    for name in ("environments", "flags", "rewards", "observations", "finals"):
        mine, other = np.asarray(getattr(found, name)), np.asarray(getattr(expected, name))
        np.testing.assert_array_equal(mine, other)
        assert mine.dtype == other.dtype, name


class Client:
    """What a client sends by chance: often the same environments, without flags."""

    def __init__(self, generator, environments, kinds):
        self._generator = generator
        self._count = environments
        self._kinds = kinds
        self._environments = np.arange(environments)

    def next(self):
        generator = self._generator
        if generator.random() < 0.3:
            size = generator.integers(1, self._count + 1)
            self._environments = generator.permutation(self._count)[:size]
        count = len(self._environments)
        flags = np.zeros(count, np.uint8)
        if generator.random() < 0.4:
            flags = generator.choice([0, 0, *FLAGS], count).astype(np.uint8)
        dtype, shape, action_dtype, action_shape = self._kinds[generator.integers(len(self._kinds))]
        acting = int(np.count_nonzero(wants_action(flags)))
        steps = Steps(
            self._environments,
            flags,
            generator.normal(size=count),
            self._array(acting, dtype, shape),
            self._array(int(np.count_nonzero(flags & FINAL)), dtype, shape),
        )
        actions = self._array(acting, action_dtype, action_shape)
        return steps, actions, generator.normal(size=int(np.count_nonzero(flags & ENDED)))

    def _array(self, count, dtype, shape):
        return (self._generator.normal(size=(count, *shape)) * 50).astype(dtype)


@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), KINDS], ids=range(len(KINDS) + 1))
@pytest.mark.parametrize("environments", [1, 5])
def test_random_conversations_are_those_of_the_plain_functions(kinds, environments):
    generator = np.random.default_rng(environments)
    client, codec = Client(generator, environments, kinds), ServerCodec(environments)
    for _ in range(500):
        steps, actions, scores = client.next()
        payload = encoded(steps)
        view = memoryview(payload) if generator.random() < 0.5 else payload
        assert_equal(codec.decode(view), decode_steps(payload, environments))
        expected = encode_answers(steps.environments, steps.flags, actions, scores)
        assert codec.encode(actions, scores) == expected


def test_an_answer_is_read_by_a_client():
    codec = ServerCodec(3)
    for step in range(4):
        codec.decode(encoded(plain([2, 0], floats(step, step))))
        answers: Answers = decode_answers(codec.encode(np.array([step, 7]), np.zeros(0)))
        assert answers.environments.tolist() == [2, 0]
        assert answers.actions.tolist() == [step, 7]
        assert answers.scores.tolist() == []


def test_the_kind_of_the_actions_may_change_between_alike_messages():
    codec = ServerCodec(2)
    steps = plain([0, 1], floats(1, 2))
    for actions in (
        np.array([1, 2]),
        np.array([3, 4]),
        np.array([3, 4], np.int32),
        np.array([3, 4], ">i4"),
        np.array([[3], [4]]),
        np.array([1, 0, 2, 0])[::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ):
        codec.decode(encoded(steps))
        expected = encode_answers(steps.environments, steps.flags, actions, np.zeros(0))
        assert codec.encode(actions, np.zeros(0)) == expected


def test_the_answer_stays_when_the_actions_are_used_again():
    codec = ServerCodec(1)
    actions = np.array([5])
    answers = []
    for _ in range(3):
        codec.decode(encoded(plain([0], floats(1))))
        answers.append(codec.encode(actions, np.zeros(0)))
        actions += 1
    assert [decode_answers(answer).actions.tolist() for answer in answers] == [[5], [6], [7]]


def test_the_arrays_that_a_codec_returns_more_than_once_cannot_be_written_to():
    codec = ServerCodec(2)
    payload = encoded(plain([1, 0], floats(1, 2)))
    for _ in range(3):
        steps = codec.decode(payload)
        for array in (steps.environments, steps.flags):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
    assert_equal(codec.decode(payload), decode_steps(payload, 2))


def test_steps_stay_as_they_were_when_the_next_message_comes():
    codec = ServerCodec(2)
    payloads = [encoded(plain([0, 1], floats(n, n), [n, n])) for n in range(3)]
    kept = [codec.decode(payload) for payload in payloads]
    for steps, payload in zip(kept, payloads, strict=True):
        assert_equal(steps, decode_steps(payload, 2))


def test_the_same_environments_in_another_order_are_another_message():
    codec = ServerCodec(3)
    for environments in ([0, 1], [1, 0], [1, 2], [2], [0, 1]):
        payload = encoded(plain(environments, np.zeros((len(environments), 1), np.float32)))
        assert_equal(codec.decode(payload), decode_steps(payload, 3))
        actions = np.arange(len(environments))
        answers = decode_answers(codec.encode(actions, np.zeros(0)))
        assert answers.environments.tolist() == environments


def test_a_message_of_the_same_length_with_other_flags_is_read_anew():
    codec = ServerCodec(2)
    steps = plain([0, 1], floats(1, 2))
    codec.decode(encoded(steps))
    codec.encode(np.array([1, 2]), np.zeros(0))
    flags = np.array([START, 0], np.uint8)
    started = encoded(Steps(steps.environments, flags, steps.rewards, steps.observations, ()))
    assert len(started) == len(encoded(steps))
    assert codec.decode(started).flags.tolist() == [START, 0]
    assert codec.encode(np.array([1, 2]), np.zeros(0)) == encode_answers(
        steps.environments, flags, np.array([1, 2]), np.zeros(0)
    )


@pytest.mark.parametrize("reward", [np.nan, np.inf, -np.inf, 1e39])
def test_a_reward_that_is_not_allowed_is_refused_in_a_message_like_the_one_before(reward):
    codec = ServerCodec(1)
    codec.decode(encoded(plain([0], floats(1))))
    with pytest.raises(ProtocolError, match="a reward is not finite as a 32-bit float"):
        codec.decode(encoded(plain([0], floats(1), [reward])))


def test_every_damage_to_a_message_is_seen_as_the_plain_function_sees_it():
    """Each byte in turn, in a message like the one before, and each length."""
    good = encoded(plain([0, 2], np.arange(6, dtype=np.float32).reshape(2, 3)))
    damaged = [good[:length] for length in range(1, len(good))] + [good + b"\0"]
    for place in range(len(good)):
        for value in (0, 1, 255):
            damaged.append(good[:place] + bytes([value]) + good[place + 1 :])
    for payload in damaged:
        codec = ServerCodec(3)
        codec.decode(good)
        reason = reason_for_refusing(payload, 3)
        if reason is None:
            assert_equal(codec.decode(payload), decode_steps(payload, 3))
            continue
        with pytest.raises(ProtocolError) as refused:
            codec.decode(payload)
        assert str(refused.value) == reason


def reason_for_refusing(payload, environments):
    try:
        decode_steps(payload, environments)
    except ProtocolError as error:
        return str(error)
    return None


def test_an_answer_to_nothing_is_an_error():
    with pytest.raises(RuntimeError, match="no steps have been decoded"):
        ServerCodec(1).encode(np.array([1]), np.zeros(0))


def test_several_named_arrays_are_read_after_one_unnamed():
    codec = ServerCodec(1)
    codec.decode(encoded(plain([0], floats(1))))
    named = {"left": floats(1), "right": floats(2)}
    read = codec.decode(encoded(plain([0], named))).observations
    assert {name: array.tolist() for name, array in read.items()} == {"left": [[1]], "right": [[2]]}
