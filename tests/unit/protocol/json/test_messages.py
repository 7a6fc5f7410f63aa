import json
import random
from functools import partial

import numpy as np
import pytest
from json_requests import Act, Request, RewardAndAct, RewardAndReset, encode_request

from relaax.errors import ProtocolError
from relaax.protocol.binary import Answers, Metric
from relaax.protocol.json import ClientCodec, ServerCodec, decode_agent
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, AgentName, Steps

# Captured from the code of 2017.
REQUESTS = [
    (RewardAndAct(1.0, [1.5, [2, None]]), b'["reward_and_act", 1.0, "[1.5, [2, null]]"]'),
    (RewardAndAct(0.5, None), b'["reward_and_act", 0.5, "null"]'),
    (Metric("client latency", 0.25), b'["scalar_metric", "client latency", 0.25]'),
    (Metric("loss", 0.25, 7), b'["scalar_metric", "loss", 0.25, 7]'),
    (RewardAndReset(-1.0), b'["reward_and_reset", -1.0]'),
    (Act({"a": "b"}), b'["act", "{\\"a\\": \\"b\\"}"]'),
]


def step(flags, reward=0.0, states=(), executed=()) -> Steps:
    finals, observations = (states, ()) if flags & FINAL else ((), states)
    return Steps([0], np.uint8([flags]), np.array([reward]), observations, finals, executed)


def as_steps(request: Request) -> Steps | Metric:
    match request:
        case Act(state):
            return step(START, 0.0, [state])
        case RewardAndAct(reward, state, action):
            executed = () if action is None else (action,)
            return step(EXECUTED if executed else 0, reward, [state], executed)
        case RewardAndReset(reward, action):
            executed = () if action is None else (action,)
            return step(TERMINATED | (EXECUTED if executed else 0), reward, [], executed)
    return request


def encoded(message: Steps | Metric) -> bytes:
    codec = ClientCodec()
    return codec.encode_metric(message) if isinstance(message, Metric) else codec.encode(message)


def answered(payload: bytes, flags: int = START) -> Answers:
    """Return the answers to a step with ``flags`` whose state is 0."""
    codec = ClientCodec()
    codec.encode(step(flags, 0.0, [] if flags & TERMINATED else [0]))
    return codec.decode(payload)


@pytest.mark.parametrize(("request_", "payload"), REQUESTS)
def test_requests_are_the_bytes_of_2017(request_: Request, payload: bytes) -> None:
    assert encoded(as_steps(request_)) == payload
    arrived, sent = ServerCodec().decode(payload), as_steps(request_)
    if isinstance(sent, Metric):
        assert arrived == sent
    else:
        assert (arrived.flags, arrived.rewards) == (sent.flags, sent.rewards)
        assert list(arrived.observations) == list(sent.observations)


def test_replies_are_the_bytes_of_2017() -> None:
    assert ServerCodec().encode([3], []) == b'["act", 3]'
    assert ServerCodec().encode([], [0.5]) == b'["reset", 0.5]'
    assert answered(b'["act", 3]').actions == [3]
    assert answered(b'["reset", 0.5]', TERMINATED).scores.tolist() == [0.5]


def test_the_score_of_an_episode_that_is_cut_off_is_counted_by_the_client() -> None:
    codec, scores = ClientCodec(), []
    for flags, reward in ((START, 0.0), (0, 1.0), (TRUNCATED | FINAL, 0.5), (START, 0.0)):
        codec.encode(step(flags, reward, [7]))
        scores.append(codec.decode(b'["act", 3]').scores.tolist())
    assert scores == [[], [], [1.5], []]
    assert codec.encode(step(TRUNCATED | FINAL, 0.25, [7])) == b'["reward_and_act", 0.25, "7"]'
    assert codec.decode(b'["act", 3]').scores == [0.25]


def test_an_array_state_is_encoded_twice() -> None:
    state = np.float32([[1, 2], [3, 4]])
    payload = encoded(step(START, 0.0, [state]))
    assert payload.startswith(b'["act", "{\\"b64npz\\": \\"UEsDB')
    (decoded,) = ServerCodec().decode(payload).observations
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded, state)


def test_an_array_action_is_encoded_once() -> None:
    payload = ServerCodec().encode([np.float32([0.5, -0.25])], [])
    assert payload.startswith(b'["act", {"b64npz": "UEsDB')
    assert answered(payload).actions[0].tolist() == [0.5, -0.25]


@pytest.mark.parametrize("action", [np.int64(3), np.uint8(3)])
def test_a_numpy_integer_is_a_discrete_action(action: np.integer) -> None:
    assert ServerCodec().encode([action], []) == b'["act", 3]'


def test_a_numpy_reward_is_a_number() -> None:
    assert encoded(step(TERMINATED, np.float32(0.5))) == b'["reward_and_reset", 0.5]'


@pytest.mark.parametrize(
    ("first", "agent"),
    [
        (b'["agent", "left"]', AgentName("left")),
        (b' [ "agent" , "left", 3, "duel"]', AgentName("left", "duel", 3)),
        (b'["act", "[\\"agent\\"]"]', None),
        (b"RLX", None),
    ],
)
def test_the_first_message_may_name_the_agent(first: bytes, agent: AgentName | None) -> None:
    assert decode_agent(first) == agent


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (b'["agent"]', "'agent' takes 1 or 2 or 3 values after the verb, 0 came"),
        (b'["agent", ""]', "the name of an agent has 1 to 64 bytes of UTF-8, this is ''"),
        (b'["agent", 1]', "the name of an agent has 1 to 64 bytes"),
        (b'["agent", "left", true]', "is an integer from 0 to 254, this is True"),
        (b'["agent", "left", 255]', "is an integer from 0 to 254, this is 255"),
        (b'["agent", "left", 0, "' + b"g" * 65 + b'"]', "the group of an agent has 0 to 64"),
    ],
)
def test_an_agent_that_cannot_be_named_so_is_refused(first: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        decode_agent(first)


def test_a_metric_may_have_null_for_x() -> None:
    assert ServerCodec().decode(b'["scalar_metric", "loss", 1, null]') == Metric("loss", 1.0)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\xff", "not UTF-8"),
        (b"GET / HTTP/1.1", "not JSON"),
        (b"{}", "starts with a verb"),
        (b"[]", "starts with a verb"),
        (b"[1]", "starts with a verb"),
        (b'["agent", "left"]', "'agent' is the first message of a connection, or none"),
        (b'["jump", 1]', "'jump' is unknown; the verbs are act, reward_and_act"),
        (b'["reset", 1]', "'reset' is unknown"),
        (b'["act"]', "'act' takes 1 values after the verb, 0 came"),
        (b'["act", "1", "2"]', "'act' takes 1 values after the verb, 2 came"),
        (b'["reward_and_act", "1"]', "'reward_and_act' takes 2"),
        (b'["reward_and_reset"]', "'reward_and_reset' takes 1"),
        (b'["scalar_metric", "x"]', "'scalar_metric' takes 2 or 3"),
        (b'["scalar_metric", "x", 1, 2, 3]', "'scalar_metric' takes 2 or 3"),
        (b'["act", [1, 2]]', r"the state of 'act' is a string that holds JSON, this is \[1, 2\]"),
        (b'["act", null]', "this is None"),
        (b'["act", "[1"]', "the state of 'act': this is not JSON"),
        (b'["act", "[NaN]"]', "the state of 'act': NaN is not allowed"),
        (b'["act", "{\\"b64npz\\": \\"\\"}"]', "the state of 'act': an npz archive"),
        (b'["reward_and_act", "1", "1"]', "the reward of 'reward_and_act' is a number"),
        (b'["reward_and_act", true, "1"]', "is a number, this is True"),
        (b'["reward_and_reset", null]', "is a number, this is None"),
        (b'["reward_and_reset", NaN]', "NaN is not allowed"),
        (b'["reward_and_reset", 1e999]', "too large"),
        (b'["reward_and_reset", 3.5e38]', "is 3.5e.38, not finite as a 32-bit float"),
        (b'["reward_and_act", -1e39, "1"]', "is -1e.39, not finite as a 32-bit float"),
        (b'["reward_and_reset", 1' + b"0" * 400 + b"]", "too large"),
        (b'["reward_and_act", 1, "1", 0, 0]', "'reward_and_act' takes 2 or 3"),
        (
            b'["reward_and_act", 1, "1", true]',
            "the executed action of 'reward_and_act' is a number",
        ),
        (b'["reward_and_act", 1, "1", "0"]', "an array or a list of numbers, this is '0'"),
        (b'["reward_and_reset", 1, [0.5, null]]', r"this is \[0.5, None\]"),
        (b'["reward_and_reset", 1, {"left": 1}]', "this is {'left': 1}"),
        (b'["reward_and_reset", 1, NaN]', "NaN is not allowed"),
        (b'["scalar_metric", 5, 1]', "the name of a metric is a string, this is 5"),
        (b'["scalar_metric", "loss", "1"]', "the value of the metric 'loss' is a number"),
        (b'["scalar_metric", "loss", 1, "2"]', "x of the metric 'loss' is a number"),
    ],
)
def test_anything_but_a_request_is_a_protocol_error(payload: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        ServerCodec().decode(payload)


@pytest.mark.parametrize("action", [0, 1.5, [0.5, -0.25], [[1], [2]], np.float32([0.5, -0.25])])
@pytest.mark.parametrize(
    "request_of", [partial(RewardAndAct, 0.5, [1]), partial(RewardAndReset, 2)]
)
def test_an_executed_action_arrives_as_it_was(request_of, action) -> None:
    request = as_steps(request_of(action))
    arrived = ServerCodec().decode(encoded(request))
    np.testing.assert_array_equal(arrived.executed[0], action)
    assert (arrived.rewards, arrived.flags) == (request.rewards, request.flags)


def test_an_executed_action_of_null_is_none() -> None:
    for payload in (b'["reward_and_act", 1, "2", null]', b'["reward_and_reset", 1, null]'):
        steps = ServerCodec().decode(payload)
        assert (steps.executed, steps.rewards) == ((), 1.0)


@pytest.mark.parametrize("state_bytes", [1, 100_000])
def test_states_and_executed_actions_beyond_the_limit_are_refused(state_bytes: int) -> None:
    state, action = np.zeros(state_bytes, np.uint8), np.zeros(100_000, np.uint8)
    payload = encode_request(RewardAndAct(0.0, state, None if state_bytes > 1 else action))
    assert ServerCodec(100_000).decode(payload).rewards == 0
    with pytest.raises(ProtocolError, match="exceeds the limit"):
        ServerCodec(90_000).decode(payload)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b'["reset", 1.0]', "the reply 'act' was expected, 'reset' came"),
        (b'["act"]', "'act' takes 1"),
        (b'["act", 1, 2]', "'act' takes 1"),
        (b'"act"', "starts with a verb"),
        (b'["act", {"b64npz": "AAAA"}]', "npz archive"),
    ],
)
def test_anything_but_an_action_is_a_protocol_error(payload: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        answered(payload)


@pytest.mark.parametrize("payload", [b'["act", 1]', b'["reset", "1"]', b'["reset", true]', b"["])
def test_anything_but_a_score_is_a_protocol_error(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        answered(payload, TERMINATED)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), np.float32("nan")])
def test_a_reward_that_is_not_finite_is_not_sent(reward: float) -> None:
    with pytest.raises(ValueError, match=r"reward_and_reset\[1\] is (nan|inf)"):
        encoded(step(TERMINATED, reward))


def test_no_damage_causes_any_other_error() -> None:
    rng = random.Random(1)
    whole = encode_request(RewardAndAct(0.5, {"x": np.arange(3), "y": 1}))
    pieces = [
        b'"',
        b"[",
        b"]",
        b"null",
        b"1e400",
        b"NaN",
        b"\xff",
        b"{}",
        json.dumps([[]]).encode(),
    ]
    refused = 0
    for _ in range(3000):
        place = rng.randrange(len(whole))
        damaged = whole[:place] + rng.choice(pieces) + whole[place + rng.randint(0, 9) :]
        try:
            ServerCodec().decode(damaged)
        except ProtocolError:
            refused += 1
    assert refused > 2000
