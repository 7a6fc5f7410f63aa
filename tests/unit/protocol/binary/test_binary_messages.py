"""The messages of version 2: round trips, refusals, and nonsense."""

import json
import re
import struct

import numpy as np
import pytest

from relaax.errors import ProtocolError
from relaax.protocol import binary
from relaax.protocol.binary import Error, ErrorCode, Hello, Metric, ServerCodec, Welcome
from relaax.spaces import actions_differ, box, differ, discrete, misfits, shape_of
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, Evaluation, Steps


def steps(flags, observations, finals=(), environments=None, rewards=None, executed=()):
    count = len(flags)
    return Steps(
        np.arange(count) if environments is None else np.array(environments),
        np.array(flags, np.uint8),
        np.ones(count) if rewards is None else np.array(rewards, float),
        observations,
        finals,
        executed,
    )


def named(**spaces):
    return {"type": "Dict", "spaces": spaces}


def rows(count, start=0):
    return np.arange(start, start + 2 * count, dtype=np.float32).reshape(count, 2)


MIXED = steps(
    [0, START, TERMINATED, TRUNCATED | FINAL | START, TERMINATED | START],
    rows(4),
    rows(1, 100),
    environments=[7, 0, 3, 9, 2],
    rewards=[0.5, 0, -1, 2, 3],
)


#: Two of them report what they executed, with nothing else, with an end and with a start.
EXECUTING = steps(
    [EXECUTED, 0, TERMINATED | EXECUTED, TRUNCATED | FINAL | START | EXECUTED],
    rows(3),
    rows(1, 100),
    executed=rows(3, 50),
)


def same(first, second):
    for name in ("environments", "flags", "rewards", "observations", "finals", "executed"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_steps_arrive_as_they_were():
    same(binary.decode_steps(binary.encode_steps(MIXED), 10), MIXED)


def test_executed_actions_arrive_as_they_were():
    same(binary.decode_steps(binary.encode_steps(EXECUTING), 4), EXECUTING)


def test_a_message_without_executed_actions_has_the_old_form():
    """Older servers read it."""
    assert binary.encode_steps(steps([0], rows(1)))[-1:] == b"\0"
    assert len(binary.encode_steps(steps([0], rows(1)))) == 36


def test_a_server_that_is_older_does_not_promise_to_take_executed_actions():
    assert binary.decode_welcome(binary.encode_welcome(Welcome())).executed_actions
    for said in (b"{}", b'{"executed_actions": 1}', b'{"executed_actions": null}'):
        assert not binary.decode_welcome(b"\2" + said).executed_actions


def test_answers_arrive_as_they_were():
    payload = binary.encode_answers(
        MIXED.environments, MIXED.flags, np.arange(4), np.array([1.5, 2.5, 3.5])
    )
    answers = binary.decode_answers(payload)
    assert answers.environments.tolist() == [7, 0, 3, 9, 2]
    assert (answers.actions.tolist(), answers.scores.tolist()) == ([0, 1, 2, 3], [1.5, 2.5, 3.5])


def test_answers_without_an_action_arrive_too():
    payload = binary.encode_answers(
        np.array([4]), np.array([TERMINATED], np.uint8), np.zeros(0, np.int64), np.array([9.0])
    )
    answers = binary.decode_answers(payload)
    assert (len(answers.actions), answers.scores.tolist()) == (0, [9.0])


def test_hello_and_welcome_arrive_as_they_were():
    hello = Hello("ab" * 16, "Größe", 12, box("uint8", (84, 84)), discrete(3))
    assert binary.decode_hello(binary.encode_hello(hello)) == hello
    welcome = Welcome(None, discrete(3))
    assert binary.decode_welcome(binary.encode_welcome(welcome)) == welcome


@pytest.mark.parametrize("evaluate", Evaluation)
def test_an_evaluation_is_asked_for_and_promised_by_a_member_of_its_own(evaluate):
    hello, welcome = Hello("a", "", evaluate=evaluate), Welcome(evaluate=evaluate)
    assert binary.decode_hello(binary.encode_hello(hello)) == hello
    assert binary.decode_welcome(binary.encode_welcome(welcome)) == welcome
    assert json.loads(binary.encode_hello(hello)[8:])["evaluate"] == evaluate.value


def test_a_training_hello_has_the_form_of_before_evaluations():
    assert b"evaluate" not in binary.encode_hello(Hello("a", ""))
    assert b"evaluate" not in binary.encode_welcome(Welcome())


def test_agents_with_names_are_announced_and_promised_by_a_member_of_its_own():
    hello, welcome = Hello("a", "", 4, agents=("left", "right")), Welcome(agents=True)
    assert binary.decode_hello(binary.encode_hello(hello)) == hello
    assert binary.decode_welcome(binary.encode_welcome(welcome)) == welcome
    assert b"agents" not in binary.encode_hello(Hello("a", "", 4))
    assert b"agents" not in binary.encode_welcome(Welcome())


def test_the_agents_of_an_environment_are_a_group_that_no_other_client_has():
    names = [Hello(run, "", 4, agents=("left", "right")).agent_names() for run in "ab"]
    assert [(each.name, each.number) for each in names[0]] == [("left", 0), ("right", 1)] * 2
    groups = [[each.group for each in of_client] for of_client in names]
    assert [len(set(groups[0][begin : begin + 2])) for begin in (0, 2)] == [1, 1]
    assert len({*groups[0], *groups[1]}) == 4
    assert Hello("a", "", 4).agent_names() == []


def test_a_hello_with_agents_that_cannot_be_is_not_sent():
    with pytest.raises(ValueError, match="2 agents each have no 3 agents in all"):
        binary.encode_hello(Hello("a", "", 3, agents=("left", "right")))


def test_members_that_are_not_known_are_ignored():
    payload = b"\x01RLX\x02\0\0\0" + json.dumps({"run_id": "a", "colour": "red"}).encode()
    assert binary.decode_hello(payload) == Hello("a", "", 1)


@pytest.mark.parametrize("metric", [Metric("speed", 2.5), Metric("ü" * 127, -1e300, 0.0)])
def test_metrics_arrive_as_they_were(metric):
    assert binary.decode_metric(binary.encode_metric(metric)) == metric


def test_an_error_is_raised_wherever_something_else_is_expected():
    payload = binary.encode_error(ErrorCode.SERVER, "no luck")
    for decode in (binary.decode_welcome, binary.decode_answers):
        with pytest.raises(Error, match="no luck") as said:
            decode(payload)
        assert said.value.code == ErrorCode.SERVER


@pytest.mark.parametrize(
    ("changed", "environments", "reason"),
    [
        (steps([0], rows(1), environments=[3]), 3, "environment 3 reports, the hello announced 3"),
        (steps([0, 0], rows(2), environments=[1, 1]), 3, "twice in one message"),
        (steps([], ()), 3, "one environment at least"),
        (steps([TERMINATED | TRUNCATED | FINAL], (), rows(1)), 3, r"\[14\] do not go together"),
        (steps([TRUNCATED], ()), 3, r"\[4\] do not go together"),
        (steps([FINAL], rows(1), rows(1)), 3, r"\[8\] do not go together"),
        (steps([32], rows(1)), 3, r"\[32\] do not go together"),
        (steps([START | EXECUTED], rows(1)), 3, r"\[17\] do not go together"),
        (steps([FINAL | EXECUTED], rows(1), rows(1)), 3, r"\[24\] do not go together"),
        (steps([0], rows(2)), 3, "1 observations are expected, 2 came"),
        (steps([0], ()), 3, "1 observations are expected, 0 came"),
        (steps([TERMINATED], rows(1)), 3, "0 observations are expected, 1 came"),
        (steps([TRUNCATED | FINAL], ()), 3, "1 final observations are expected, 0 came"),
        (steps([0], rows(1), rewards=[np.nan]), 3, "a reward is not finite"),
        (steps([0, 0], rows(2), rewards=[0, 3.5e38]), 3, "a reward is not finite as a 32-bit"),
        (steps([0], {"a": rows(2)}), 3, "1 observations are expected, 2 came"),
        (
            steps([EXECUTED], rows(1), executed=rows(2)),
            3,
            "1 executed actions are expected, 2 came",
        ),
        (steps([0], rows(1), executed=rows(1)), 3, "bytes follow after the end of a message"),
    ],
)
def test_steps_that_contradict_themselves_are_refused(changed, environments, reason):
    with pytest.raises(ProtocolError, match=reason):
        binary.decode_steps(binary.encode_steps(changed), environments)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "a hello is not JSON"),
        (b"[]", "a hello is a JSON object"),
        (b"\xff\xfe", "a hello is not JSON"),
        (b'{"environments": 0}', "environments is 1 to 65535"),
        (b'{"environments": true}', "environments is 1 to 65535"),
        (b'{"run_id": 5}', "run_id is a string"),
        (json.dumps({"environment": "x" * 256}).encode(), "at most 255 characters"),
        (b'{"a":' * 65 + b"5" + b"}" * 65, "JSON is nested too deeply: at most 64 levels"),
        (b'{"evaluate": "now"}', "evaluate is 'deterministic' or 'stochastic', not 'now'"),
        (b'{"evaluate": true}', "evaluate is 'deterministic' or 'stochastic', not True"),
        (b'{"action_space": 5}', "action_space is an object or null"),
        (b'{"agents": []}', "agents is a list of names, or null"),
        (b'{"agents": "left"}', "agents is a list of names, or null"),
        (b'{"agents": [5]}', "an agent's name has 1 to 64 bytes of UTF-8, not 5"),
        (b'{"agents": [""]}', "an agent's name has 1 to 64 bytes"),
        (json.dumps({"agents": ["\u00fc" * 33]}).encode(), "an agent's name has 1 to 64 bytes"),
        (b'{"agents": ["\\ud800"]}', "an agent's name has 1 to 64 bytes of UTF-8"),
        (b'{"agents": ["a", "a"], "environments": 2}', "have the same name"),
        (b'{"agents": ["a", "b"]}', "with 2 agents each have no 1 agents in all"),
        (json.dumps({"agents": ["a"] * 256}).encode(), "255 agents at most, not 256"),
    ],
)
def test_an_invalid_hello_is_refused(body, reason):
    with pytest.raises(ProtocolError, match=reason):
        binary.decode_hello(b"\x01RLX\x02\0\0\0" + body)


@pytest.mark.parametrize("key", ["run_id", "environment"])
@pytest.mark.parametrize("text", ["x" * 256, "half a pair: \ud800"])
def test_a_text_of_a_hello_is_short_and_unicode(key, text):
    texts = {"run_id": "a", "environment": "b"} | {key: text}
    with pytest.raises(ValueError, match=f"{key} is a string of at most 255 characters"):
        binary.encode_hello(Hello(**texts))
    payload = b"\x01RLX\x02\0\0\0" + json.dumps(texts).encode()
    with pytest.raises(ProtocolError, match=f"{key} is a string of at most 255 characters"):
        binary.decode_hello(payload)


def test_the_longest_texts_of_a_hello_arrive():
    hello = Hello("ü" * 255, "ß" * 255)
    assert binary.decode_hello(binary.encode_hello(hello)) == hello


def test_an_error_with_half_a_character_can_be_sent_all_the_same():
    with pytest.raises(Error, match=r"^a name: \?$"):
        binary.raise_if_error(binary.encode_error(ErrorCode.MISMATCH, "a name: \ud800"))


def test_another_version_is_refused_with_the_spoken_ones():
    with pytest.raises(Error, match="version 3 was asked for; versions 1 and 2") as said:
        binary.decode_hello(b"\x01RLX\x03\0\0\0{}")
    assert said.value.code == ErrorCode.VERSION


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_a_metrics_name_has_a_length(name):
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        binary.encode_metric(Metric(name, 1.0))
    payload = struct.pack("<BBHdd", 5, 0, len(name), 1.0, 0.0) + name.encode()
    with pytest.raises(ProtocolError, match="1 to 255 bytes"):
        binary.decode_metric(payload)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_metric_is_finite(value):
    with pytest.raises(ValueError, match="the metric speed is"):
        binary.encode_metric(Metric("speed", value))
    with pytest.raises(ProtocolError, match="finite"):
        binary.decode_metric(struct.pack("<BBHdd", 5, 0, 1, value, 0.0) + b"a")


def read_anything(payload):
    """What a server and a client do with a payload."""
    if binary.is_hello(payload):
        binary.decode_hello(payload)
        return
    binary.decode_metric(payload) or binary.decode_steps(payload, 10)
    binary.decode_answers(payload)
    binary.decode_welcome(payload)


VALID = [
    binary.encode_steps(MIXED),
    binary.encode_steps(EXECUTING),
    binary.encode_answers(MIXED.environments, MIXED.flags, np.arange(4), np.ones(3)),
    binary.encode_hello(Hello("a" * 32, "x", 3, box("float32", (2,)), discrete(2))),
    binary.encode_welcome(Welcome(box("float32", (2,)), None)),
    binary.encode_metric(Metric("speed", 1.0)),
    binary.encode_error(ErrorCode.PROTOCOL, "why"),
]


DECODERS = {
    1: binary.decode_hello,
    2: binary.decode_welcome,
    3: lambda payload: binary.decode_steps(payload, 10),
    4: binary.decode_answers,
    5: binary.decode_metric,
}


@pytest.mark.parametrize("payload", VALID[:6], ids=lambda payload: f"message {payload[0]}")
def test_a_message_that_breaks_off_anywhere_is_refused(payload):
    decode = DECODERS[payload[0]]
    decode(payload)
    for end in range(1, len(payload)):
        with pytest.raises((ProtocolError, Error)):
            decode(payload[:end])


@pytest.mark.parametrize("payload", VALID[:3], ids=["steps", "executed", "actions"])
def test_bytes_behind_the_end_are_refused(payload):
    with pytest.raises(ProtocolError, match="2 bytes follow after the end"):
        DECODERS[payload[0]](payload + b"\0\0")


@pytest.mark.parametrize("payload", VALID, ids=lambda payload: f"message {payload[0]}")
def test_changed_bytes_are_read_or_refused_but_never_crash(payload):
    generator = np.random.default_rng(payload[0])
    for _ in range(400):
        changed = bytearray(payload)
        for _ in range(generator.integers(1, 4)):
            changed[generator.integers(len(changed))] = generator.integers(256)
        try:
            read_anything(bytes(changed))
        except (ProtocolError, Error):
            continue


class TestTheShortCut:
    def test_plain_steps_are_read_as_all_others(self):
        reader = ServerCodec(10)
        messages = [
            MIXED,
            *(steps([0, 0], rows(2, n), environments=[4, 6], rewards=[n, -n]) for n in range(3)),
            steps([0, TERMINATED], rows(1), environments=[4, 6]),
            steps([0, 0], rows(2), environments=[6, 4]),
            steps([0, 0], rows(2).astype(np.float64), environments=[6, 4]),
        ]
        for message in [*messages, *messages]:
            payload = binary.encode_steps(message)
            same(reader.decode(payload), binary.decode_steps(payload, 10))

    def test_a_reward_that_is_not_finite_is_refused_there_too(self):
        reader = ServerCodec(1)
        reader.decode(binary.encode_steps(steps([0], rows(1))))
        for reward in (np.inf, np.nan, -3.5e38):
            with pytest.raises(ProtocolError, match="a reward is not finite"):
                reader.decode(binary.encode_steps(steps([0], rows(1), rewards=[reward])))

    def test_a_changed_payload_of_the_same_length_is_not_taken_for_plain(self):
        reader = ServerCodec(2)
        payload = binary.encode_steps(steps([0, 0], rows(2)))
        reader.decode(payload)
        for position in range(len(payload)):
            changed = bytearray(payload)
            changed[position] ^= 0x41
            try:
                expected = binary.decode_steps(bytes(changed), 2)
            except (ProtocolError, Error):
                with pytest.raises((ProtocolError, Error)):
                    reader.decode(bytes(changed))
            else:
                same(reader.decode(bytes(changed)), expected)

    def test_answers_have_the_bytes_of_all_others(self):
        codec = ServerCodec(3)
        plain = steps([0, 0, 0], rows(3))
        ended = steps([TERMINATED, 0, 0], rows(2))
        for number, asked in enumerate([plain, plain, ended, plain, plain]):
            count = 2 if asked is ended else 3
            actions, scores = np.arange(count) + number, np.ones(3 - count)
            read = codec.decode(binary.encode_steps(asked))
            assert codec.encode(actions, scores) == binary.encode_answers(
                read.environments, read.flags, actions, scores
            )


#: As a runner never announces it: the names of its elements are "0" and "1".
PAIR = {"type": "Tuple", "spaces": [discrete(2), discrete(3)]}

#: A server's: the mask need not be announced.
MASKED = named(board=box("float32", (2,)), legal={**box("int8", (3,)), "action_mask": True})


@pytest.mark.parametrize(
    ("told", "expected", "is_different"),
    [
        (None, box("float32", (4,)), False),
        (box("float32", (4,)), None, False),
        (box("float64", (4,)), {"type": "Box", "shape": [4]}, False),
        (box("float32", (3,)), {"type": "Box", "shape": [4]}, True),
        (discrete(2), discrete(2), False),
        (discrete(3), discrete(2), True),
        (box("float32", (2,)), discrete(2), True),
        ({"type": "MultiBinary", "shape": [4]}, {"type": "Box", "shape": [4]}, False),
        ({"type": "MultiDiscrete", "nvec": [3, 2]}, {"type": "Box", "shape": [2]}, False),
        ({"type": "Dict", "spaces": {}}, {"type": "Box", "shape": [2]}, True),
        (named(a=box("float32", (2,))), named(a={"type": "Box", "shape": [2]}), False),
        (named(a=box("float32", (2,))), named(a=box("float32", (3,))), True),
        (named(a=discrete(2)), named(b=discrete(2)), True),
        (named(a=discrete(2)), named(a=discrete(2), b=discrete(2)), True),
        (named(a=named(b=discrete(2))), {"type": "Dict", "spaces": {"a/b": discrete(2)}}, False),
        (named(a=5), named(a=discrete(2)), True),
        ({"type": "Dict", "spaces": 5}, named(a=discrete(2)), True),
        (discrete(2), named(a=discrete(2)), True),
        (named(**{"0": discrete(2), "1": discrete(3)}), PAIR, False),
        (named(**{"0": discrete(2), "1": discrete(2)}), PAIR, True),
        (named(**{"arm/0": discrete(2), "arm/1": discrete(3)}), named(arm=PAIR), False),
        (PAIR, PAIR, False),
        (box("float32", (2,)), MASKED, False),
        (named(board=box("float32", (2,))), MASKED, False),
        (named(board=box("float32", (2,)), legal=box("int8", (3,))), MASKED, False),
        (named(board=box("float32", (2,)), legal=box("int8", (4,))), MASKED, True),
        (named(legal=box("int8", (3,))), MASKED, True),
        (box("float32", (3,)), MASKED, True),
        (PAIR, box("float32", (2,)), True),
    ],
)
def test_spaces_are_compared_by_shape_and_number(told, expected, is_different):
    assert differ(told, expected) is is_different


@pytest.mark.parametrize(
    ("told", "expected", "is_different"),
    [
        (None, discrete(2), False),
        (discrete(2), discrete(2), False),
        (box("float32", (3,)), {"type": "Box", "shape": [3]}, False),
        ({"type": "MultiBinary", "shape": [3]}, {"type": "Box", "shape": [3]}, True),
        (
            {"type": "MultiDiscrete", "nvec": [3, 2]},
            {"type": "MultiDiscrete", "nvec": [2, 3]},
            True,
        ),
        (
            {"type": "MultiDiscrete", "nvec": [3, 2]},
            {"type": "MultiDiscrete", "nvec": [3, 2]},
            False,
        ),
    ],
)
def test_actions_are_of_one_kind_and_their_choices_of_one_number(told, expected, is_different):
    assert actions_differ(told, expected) is is_different


def bounded(low, high, shape=(2,), **members):
    return {**box("float32", shape), "low": low, "high": high, **members}


@pytest.mark.parametrize("are_different", [differ, actions_differ])
@pytest.mark.parametrize(
    ("told", "expected", "is_different"),
    [
        (bounded(0, 10), bounded(-1, 1), True),
        (bounded(-1, 1), bounded(-1, 1), False),
        (bounded(-1, 1), bounded(-1, 2), True),
        (bounded(-1, [1, 2]), bounded([-1, -1], [1, 2]), False),
        (bounded(-1, [1, 2]), bounded(-1, [2, 1]), True),
        (bounded(float(np.float32(-0.1)), float(np.float32(0.1))), bounded(-0.1, 0.1), False),
        (bounded(0, 1e-5), bounded(0, 1.001e-5), True),
        (bounded(1e-9, 1), bounded(0, 1), False),
        (bounded(1e6, 1e6 + 8), bounded(1e6, 1e6 + 4), True),
        (bounded(None, None), bounded(-1, 1), False),
        (bounded([None, -1], [None, 1]), bounded(-2, 2), True),
        (bounded(-3.4e38, 3.4e38), bounded(-1, 1), False),
        (box("float32", (2,)), bounded(-1, 1), False),
        (bounded(-1, 1), box("float32", (2,)), False),
        (bounded([-1, -1, -1], 1), bounded(-1, 1), True),
        (bounded([[-1], -1], 1), bounded(-1, 1), True),
        (bounded("low", {}), bounded(-1, 1), True),
        (bounded(10**400, 1), bounded(-1, 1), True),
        ({**discrete(3), "start": 1}, discrete(3), True),
        ({**discrete(3), "start": 0}, discrete(3), False),
        ({"type": "MultiDiscrete", "nvec": [3, 2], "start": [0, 1]},
         {"type": "MultiDiscrete", "nvec": [3, 2]}, True),
        ({"type": "MultiDiscrete", "nvec": [3, 2], "start": [0, 0]},
         {"type": "MultiDiscrete", "nvec": [3, 2], "start": 0}, False),
        ({"type": "MultiDiscrete", "nvec": [3, 2], "start": {}},
         {"type": "MultiDiscrete", "nvec": [3, 2]}, True),
    ],
)  # fmt: skip
def test_bounds_and_starts_are_compared_where_both_sides_have_them(
    are_different, told, expected, is_different
):
    assert are_different(told, expected) is is_different


@pytest.mark.parametrize(
    ("told", "expected", "is_different"),
    [
        ("float64", "float32", False),
        ("uint8", "float32", False),
        ("int64", "float32", False),
        ("uint8", "int32", False),
        ("bool", "uint8", False),
        ("float32", "uint8", True),
        ("float32", "int64", True),
        ("int64", "uint8", True),
        ("int8", "uint8", True),
        ("none", "uint8", True),
    ],
)
def test_observations_may_have_another_type_if_that_costs_digits_at_most(
    told, expected, is_different
):
    assert differ(box(told, (4,)), box(expected, (4,))) is is_different
    assert actions_differ(box(told, (4,)), box(expected, (4,))) is False


def test_a_misfit_is_reported_by_name():
    told = named(camera=box("uint8", (84, 84)), speeed=discrete(2), gear=discrete(5))
    expected = named(camera=box("uint8", (64, 64)), speed=discrete(2), gear=discrete(5))
    missing, unknown, wrong = misfits(told, expected)
    assert missing == "'speed' is missing"
    assert unknown == "'speeed' is not asked for"
    assert re.fullmatch(r"'camera' is .*\[84, 84\]\} instead of .*\[64, 64\]\}", wrong)


def test_a_space_nested_without_end_is_compared_all_the_same():
    told, expected = discrete(2), discrete(2)
    for _ in range(5000):
        told = named(a=told)
    assert differ(told, named(a=expected))


def test_a_long_name_with_many_inside_is_not_repeated_for_each_of_them():
    inside = named(**{str(number): discrete(2) for number in range(1000)})
    assert misfits(named(**{"x" * 100_000: inside}), named(a=discrete(2)))[1].count("x") == 100_000


def test_the_shape_of_a_space():
    assert shape_of(discrete(2)) == ()
    assert shape_of({"type": "Dict", "spaces": {}}) is None
    assert shape_of({"type": "Box", "shape": "none"}) is None


def test_a_training_is_named_by_a_member_of_its_own():
    hello = Hello("a", "", run="Größe-1")
    assert binary.decode_hello(binary.encode_hello(hello)) == hello
    assert b'"run":' not in binary.encode_hello(Hello("a", ""))
    with pytest.raises(ValueError, match="run is a string of at most 255 characters"):
        binary.encode_hello(Hello("a", "", run="x" * 256))
