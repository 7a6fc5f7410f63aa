"""The client's codec: the same bytes and the same answers as without it, and nothing shared."""

import dataclasses

import numpy as np
import pytest

from relaax.errors import ProtocolError
from relaax.protocol import binary
from relaax.protocol.binary import Answers, Error, ErrorCode
from relaax.protocol.binary.codec import ClientCodec
from relaax.steps import ENDED, FINAL, START, TERMINATED, TRUNCATED, Steps, wants_action


def rows(count, start=0, dtype=np.float32):
    return np.arange(start, start + 2 * count, dtype=dtype).reshape(count, 2)


def reports(flags, environments=None):
    """Steps with these flags, of the environments 0, 1, ... or of those named."""
    flags = np.array(flags, np.uint8)
    numbers = np.arange(len(flags)) if environments is None else np.array(environments)
    finals = rows(int(np.count_nonzero(flags & FINAL)))
    return Steps(numbers, flags, np.ones(len(flags)), rows(int(wants_action(flags).sum())), finals)


def answer(asked, first_action=0):
    """What a server answers to steps: actions that count up, and scores of 10."""
    actions = np.arange(int(wants_action(asked.flags).sum())) + first_action
    scores = np.full(np.count_nonzero(asked.flags & ENDED), 10.0)
    return binary.encode_answers(asked.environments, asked.flags, actions, scores)


def ask(codec, asked):
    """Encode steps as a client does."""
    if asked.environments.tolist() == [0, 1] and not asked.flags.any():
        return codec.encode_all(asked.rewards, asked.observations)
    return codec.encode(asked)


def same(left: Answers, right: Answers):
    for field in dataclasses.fields(Answers):
        one, other = getattr(left, field.name), getattr(right, field.name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


class TestMessages:
    def test_a_step_of_all_has_the_bytes_of_steps_without_flags(self):
        codec = ClientCodec(3)
        for number in range(4):
            asked = Steps(
                np.arange(3), np.zeros(3, np.uint8), np.full(3, number / 2), rows(3, number), ()
            )
            payload = codec.encode_all(asked.rewards, asked.observations)
            assert payload == binary.encode_steps(asked)

    @pytest.mark.parametrize(
        "observations",
        [
            rows(2),
            rows(2, dtype=np.uint8),
            rows(2, dtype=np.float64),
            rows(2).astype(">f4"),
            rows(4).reshape(2, 2, 2),
            rows(4)[::2],
            np.asfortranarray(rows(4).reshape(2, 4)),
            np.zeros((2, 0)),
            np.array([True, False]),
        ],
        ids=str,
    )
    def test_observations_of_any_kind_follow_those_of_another(self, observations):
        codec = ClientCodec(2)
        for kind in (rows(2), observations, observations, rows(2)):
            asked = Steps(np.arange(2), np.zeros(2, np.uint8), np.ones(2), kind, ())
            assert codec.encode_all(np.ones(2), kind) == binary.encode_steps(asked)

    def test_steps_of_any_kind_go_in_between(self):
        codec = ClientCodec(2)
        kinds = [
            reports([0, 0]),
            reports([START, TERMINATED]),
            reports([0, 0], environments=[1, 0]),
            reports([TRUNCATED | FINAL | START, 0]),
            reports([0], environments=[1]),
        ]
        for asked in [*kinds, *reversed(kinds), *kinds]:
            assert ask(codec, asked) == binary.encode_steps(asked)

    @pytest.mark.parametrize("rewards", [np.float32([0.5, -1]), np.array([3, 4]), [0.25, 1]])
    def test_rewards_go_as_doubles(self, rewards):
        codec = ClientCodec(2)
        steps = binary.decode_steps(codec.encode_all(rewards, rows(2)), 2)
        assert steps.rewards.tolist() == list(rewards)

    @pytest.mark.parametrize("environments", [1, 255, 256, 65535])
    def test_as_many_environments_as_a_connection_carries(self, environments):
        codec = ClientCodec(environments)
        payload = codec.encode_all(np.ones(environments), np.zeros((environments, 1), np.uint8))
        assert len(binary.decode_steps(payload, environments).flags) == environments
        plain = reports([0] * environments)
        for _ in range(2):
            same(codec.decode(answer(plain)), binary.decode_answers(answer(plain)))


class TestAnswers:
    def test_they_are_those_of_the_message_before(self):
        codec = ClientCodec(2)
        plain, ended = reports([0, 0]), reports([TERMINATED, 0])
        alone = reports([0], environments=[1])
        for number, asked in enumerate([plain, plain, ended, plain, alone, plain, plain]):
            ask(codec, asked)
            payload = answer(asked, number)
            same(codec.decode(payload), binary.decode_answers(payload))

    def test_a_view_of_a_payload_is_read_like_its_bytes(self):
        codec, asked = ClientCodec(2), reports([0, 0])
        for number in range(3):
            ask(codec, asked)
            payload = answer(asked, number)
            same(codec.decode(memoryview(payload)), binary.decode_answers(payload))

    def test_actions_of_another_kind_follow(self):
        codec, asked = ClientCodec(2), reports([0, 0])
        for actions in (np.arange(2), np.arange(2.0), rows(2), rows(2), np.arange(2)):
            ask(codec, asked)
            payload = binary.encode_answers(asked.environments, asked.flags, actions, np.zeros(0))
            same(codec.decode(payload), binary.decode_answers(payload))

    @pytest.mark.parametrize("flags", [[0, 0], [TERMINATED, TRUNCATED | FINAL | START]])
    def test_they_share_nothing_with_each_other(self, flags):
        codec, asked = ClientCodec(2), reports(flags)
        answers = []
        for _ in range(4):
            ask(codec, asked)
            answers.append(codec.decode(answer(asked)))
        for one in answers:
            for array in (one.environments, one.actions, asked.environments):
                np.add(array, 1, out=array)
        assert [one.environments.tolist() for one in answers] == [[1, 2]] * 4
        for field in dataclasses.fields(Answers):
            first, second, third = (getattr(one, field.name) for one in answers[:3])
            assert not np.shares_memory(first, second)
            assert not np.shares_memory(second, third)

    def test_the_steps_they_are_compared_with_are_those_of_the_message(self):
        codec, asked = ClientCodec(3), reports([0], environments=[1])
        codec.encode(asked)
        payload = answer(asked)
        asked.environments[0], asked.flags[0] = 2, TERMINATED
        assert codec.decode(payload).environments.tolist() == [1]


class TestWrongAnswers:
    @pytest.mark.parametrize("plain_ones_before", [0, 3])
    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (reports([0, 0], environments=[1, 0]), r"the environments \[0, 1\].* about \[1, 0\]"),
            (reports([0, 0], environments=[0, 7]), r"it answered about \[0, 7\]"),
            (reports([0]), r"it answered about \[0\]"),
            (reports([TERMINATED, 0]), r"are of the kinds \[2, 1\], not \[1, 1\]"),
            (reports([TERMINATED | START, 0]), r"are of the kinds \[3, 1\], not \[1, 1\]"),
        ],
    )
    def test_they_are_named_and_the_next_one_is_read(self, wrong, message, plain_ones_before):
        codec, asked = ClientCodec(2), reports([0, 0])
        for _ in range(plain_ones_before):
            ask(codec, asked)
            codec.decode(answer(asked))
        ask(codec, asked)
        with pytest.raises(ProtocolError, match=message):
            codec.decode(answer(wrong))
        ask(codec, asked)
        same(codec.decode(answer(asked)), binary.decode_answers(answer(asked)))

    def test_an_answer_to_all_does_not_fit_some(self):
        codec, asked = ClientCodec(2), reports([0, 0])
        for _ in range(3):
            ask(codec, asked)
            codec.decode(answer(asked))
        codec.encode(reports([0], environments=[1]))
        with pytest.raises(ProtocolError, match=r"asked about the environments \[1\]"):
            codec.decode(answer(asked))

    def test_an_error_is_raised_among_plain_answers(self):
        codec, asked = ClientCodec(2), reports([0, 0])
        for _ in range(3):
            ask(codec, asked)
            codec.decode(answer(asked))
        with pytest.raises(Error, match="the network is gone") as said:
            codec.decode(binary.encode_error(ErrorCode.SERVER, "the network is gone"))
        assert said.value.code == ErrorCode.SERVER

    def test_a_changed_payload_of_the_same_length_is_read_as_without_the_codec(self):
        codec, asked = ClientCodec(2), reports([0, 0])
        payload = answer(asked)
        for position in range(len(payload)):
            ask(codec, asked)
            codec.decode(payload)
            ask(codec, asked)
            changed = bytearray(payload)
            changed[position] ^= 0x41
            try:
                expected = binary.decode_answers(bytes(changed))
            except (ProtocolError, Error):
                with pytest.raises((ProtocolError, Error)):
                    codec.decode(bytes(changed))
                continue
            if expected.environments.tolist() == [0, 1] and expected.flags.tolist() == [1, 1]:
                same(codec.decode(bytes(changed)), expected)
            else:
                with pytest.raises(ProtocolError, match=r"asked about|are of the kinds"):
                    codec.decode(bytes(changed))

    def test_an_answer_before_any_message_is_a_mistake_of_the_caller(self):
        with pytest.raises(ValueError, match="no message has been encoded"):
            ClientCodec(1).decode(answer(reports([0])))


@pytest.mark.parametrize("shape", [(3, 4), (3, 84, 84), (3, 200, 200)])
@pytest.mark.parametrize("is_contiguous", [True, False])
def test_arrays_of_any_size_have_the_bytes_of_the_general_way(shape, is_contiguous):
    rows = np.arange(2 * np.prod(shape)).astype(np.uint8).reshape(*shape[:-1], -1)
    observations = rows[..., : shape[-1]] if is_contiguous else rows[..., ::2]
    if is_contiguous:
        observations = np.ascontiguousarray(observations)
    rewards, codec = np.ones(3), ClientCodec(3)
    flags = np.zeros(3, np.uint8)
    expected = binary.encode_steps(Steps(np.arange(3), flags, rewards, observations, ()))
    for _ in range(2):
        assert codec.encode_all(rewards, observations) == expected
