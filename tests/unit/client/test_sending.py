"""What a client of version 2 refuses to send, and which answers it refuses to take."""

from fractions import Fraction

import numpy as np
import pytest

from relaax.client import Backoff, Client, Failure, VectorClient
from relaax.protocol import binary
from relaax.protocol.json import ServerCodec
from relaax.protocol.json.codec import decode
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

STATES = np.zeros((2, 1), np.float32)
NAN_STATES = np.array([[0], [np.nan]], np.float32)
ONES = np.ones(2)
NO_ENDS = np.zeros(2, np.bool_)


def flags(*values):
    return np.array(values, np.uint8)


class Elsewhere:
    """An array of another library, in memory that numpy can read."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.dtype = self.values.dtype

    def __array__(self, dtype=None, copy=None):
        return self.values


class OnTheGpu(Elsewhere):
    def __array__(self, dtype=None, copy=None):
        raise TypeError("copy it to the CPU first")


HALF_MASKED = np.ma.array([1.0, 2.0], mask=[False, True])

NO_STATES = [
    ([1.0, None], r"the state\[1\] is None: send a number instead"),
    (None, r"the state is None"),
    ([[1, 2], [3]], r"the state\[1\] has the shape \[1\], and the state\[0\] \[2\]: pad them"),
    ([[1, 2], [3, None]], r"the state\[1\]\[1\] is None"),
    (np.array([[1, 2], [3]], object), r"the state\[1\] has the shape \[1\]"),
    (np.array([1.0, None]), r"the state\[1\] is None"),
    (np.array([1.0, 2.0], object), "the state is an array of objects: convert it"),
    (
        HALF_MASKED,
        r"the state has masked values.*: fill them \(numpy.ma.filled\), and send the mask",
    ),
    ([HALF_MASKED, HALF_MASKED], r"the state\[0\] has masked values"),
    ([np.ma.masked, 1.0], r"the state\[0\] has masked values"),
    ("left", "the state is the text 'left'"),
    ([1, 1j], r"the state\[1\] is complex: send its real and its imaginary part"),
    ([1, 10**40], r"the state\[1\] is 1000.*, too large for a number of 64 bits"),
    ({1, 2}, "the state is of the type set"),
    (
        OnTheGpu([1.0]),
        "the state is of the type .*: make a numpy array of numbers of it, in this machine",
    ),
]

#: All of them are 1.
NUMBERS = [
    1, True, np.float16(1), np.float32(1), np.longdouble(1), np.int8(1), np.uint64(1), Fraction(1),
    np.array(1.0), np.ones(1, np.float16), np.ones((1, 1)), [1.0], np.ma.array([1.0]),
    Elsewhere([1]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "kind"), [(3, "i"), (True, "b"), (3.0, "f"), (np.int32(3), "i"), ([3, 4], "f")]
)
def test_a_single_integer_stays_one(server, state, kind):
    """In version 1 it is one too: an agent gets the same from both."""
    with Client(server.url) as client:
        client.init(state)
        client.send(1.0, state)
    assert [np.asarray(steps.observations).dtype.kind for steps in server.steps] == [kind, kind]


@pytest.fixture(name="vector")
def _vector(server):
    with VectorClient(server.url, 2) as client:
        client.init(STATES)
        yield client


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, np.nan], STATES), r"rewards\[1\] is nan"),
        ((["1", 2], STATES), r"could not convert them: rewards\[0\] is the text '1'"),
        (([1, None], STATES), r"rewards\[1\] is None"),
        (([1, 1j], STATES), r"rewards\[1\] is complex"),
        ((np.ones((2, 2)), STATES), r"rewards are 2 numbers, not an array of shape \(2, 2\)"),
        ((np.ones((1, 2)), STATES), r"rewards are 2 numbers, not an array of shape \(1, 2\)"),
        ((np.ma.array(ONES, mask=[0, 1]), STATES), "rewards has masked values"),
        ((ONES, [[1.0], None]), r"observations\[1\] is None"),
        ((ONES, [HALF_MASKED, HALF_MASKED]), r"observations\[0\] has masked values"),
        ((ONES, STATES, ["yes", "no"]), r"is 2 flags: .* them: terminated\[0\] is the text"),
        (([1.0, -3.5e38], STATES), r"rewards\[1\] is -3.5e\+38, not finite as a 32-bit float"),
        ((np.ones(3), STATES), r"rewards are 2 numbers, not an array of shape \(3,\)"),
        ((1.0, STATES), r"rewards are 2 numbers, not an array of shape \(\)"),
        ((["one", 2], STATES), "rewards are 2 numbers: could not convert"),
        ((ONES, NAN_STATES), r"observations\[1, 0\] is nan, it must be finite"),
        ((ONES, STATES[:1]), r"observations are 2 rows, not an array of shape \(1, 1\)"),
        ((ONES, 5.0), r"observations are 2 rows, not an array of shape \(\)"),
        ((ONES, [[1], [2, 3]]), "observations are no array of numbers: list"),
        ((ONES, STATES, [True]), "terminated is 2 flags"),
        ((ONES, STATES, None, np.zeros((2, 2))), "truncated is 2 flags"),
        ((ONES, STATES, NO_ENDS, ~NO_ENDS), r"finals are 2 rows, not an array of shape \(0,\)"),
        ((ONES, STATES, NO_ENDS, ~NO_ENDS, STATES[:1]), "finals are 2 rows"),
        ((ONES, STATES, NO_ENDS, ~NO_ENDS, NAN_STATES), r"finals\[1, 0\] is nan"),
        ((ONES, STATES, NO_ENDS, NO_ENDS, STATES), "finals are 0 rows"),
    ],
)
def test_steps_that_cannot_be_sent_are_named_and_keep_the_connection(vector, arguments, message):
    with pytest.raises(ValueError, match=message):
        vector.send(*arguments)
    assert vector.send(ONES, STATES).tolist() == [1, 1]


@pytest.mark.parametrize(
    "rewards",
    [
        [1, 1.0], np.ones(2, np.float16), np.ones((2, 1)), [np.ones(1), np.ones(1)],
        np.array([1, 1.0], object), np.ones(2, np.longdouble), Elsewhere([1, 1]),
    ],
)  # fmt: skip
def test_rewards_are_a_number_each_of_any_type(vector, server, rewards):
    vector.send(rewards, STATES)
    assert server.steps[-1].rewards.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (Steps([0, 2], flags(0, 0), ONES, STATES, ()), "different numbers from 0 to 1"),
        (Steps([0, 0], flags(0, 0), ONES, STATES, ()), "different numbers from 0 to 1"),
        (Steps([], flags(), [], (), ()), "an environment or more"),
        (Steps([0], flags(0, 0), ONES, STATES, ()), "as many flags"),
        (Steps([0, 1], flags(0, TERMINATED), ONES, STATES, ()), "observations are 1 rows"),
        (Steps([0, 1], flags(TRUNCATED | FINAL, 0), ONES, STATES[:1], ()), "finals are 1 rows"),
    ],
)
def test_reports_that_contradict_themselves_are_refused(vector, steps, message):
    with pytest.raises(ValueError, match=message):
        vector.exchange(steps)


def test_the_first_observations_may_be_lists_and_are_checked_too(server):
    with VectorClient(server.url, 2) as client:
        with pytest.raises(ValueError, match="observations are 2 rows"):
            client.init([[0.0]])
        with pytest.raises(ValueError, match=r"observations\[1, 0\] is nan"):
            client.init(NAN_STATES)
        assert server.accepted == 0
        assert client.init([[0.5], [1]]).tolist() == [1, 1]
    assert server.steps[0].observations.tolist() == [[0.5], [1.0]]


@pytest.mark.parametrize("ending", ["terminated", "truncated"])
def test_one_kind_of_end_alone_can_be_told(vector, server, ending):
    finals = STATES[:1] if ending == "truncated" else None
    vector.send(ONES, STATES, **{ending: [False, True]}, finals=finals)
    end = {"terminated": TERMINATED, "truncated": TRUNCATED | FINAL}[ending]
    assert server.steps[-1].flags.tolist() == [0, end | START]


class TestOneEnvironment:
    @pytest.mark.parametrize("reward", [np.nan, np.inf, 3.5e38, np.float64("-1e39")])
    @pytest.mark.parametrize("version", [1, 2])
    def test_a_reward_is_finite_as_a_float_of_32_bits(self, server, start_server, reward, version):
        url = server.url if version == 2 else start_server().url
        with Client(url, protocol=version) as client:
            client.init([0.0])
            for send in (
                lambda: client.send(reward, [1.0]),
                lambda: client.reset(reward),
                lambda: client.truncate(reward, [1.0]),
            ):
                with pytest.raises(ValueError, match=r"the reward is .*, not finite as a 32-bit"):
                    send()
            assert client.send(3.4e38, [1.0]) == 1

    @pytest.mark.parametrize(
        "reward",
        ["1", None, [1.0, 2.0], np.ones(2), np.ones(0), 1j, HALF_MASKED[1:], np.array("1")],
    )
    def test_a_reward_is_a_number(self, server, reward):
        with Client(server.url) as client:
            client.init([0.0])
            with pytest.raises(TypeError, match=r"the reward is .*, it must be a number"):
                client.reset(reward)

    @pytest.mark.parametrize("reward", NUMBERS)
    @pytest.mark.parametrize("version", [1, 2])
    def test_a_reward_is_one_number_of_any_type(self, server, start_server, reward, version):
        old = start_server()
        with Client(server.url if version == 2 else old.url, protocol=version) as client:
            client.init([0.0])
            client.send(reward, [0.0])
        said = server.steps[-1].rewards[0] if version == 2 else old.messages[-1][1]
        assert said == 1

    @pytest.mark.parametrize(("state", "message"), NO_STATES)
    def test_a_state_that_is_not_numeric_is_refused_before_it_is_sent(self, server, state, message):
        with Client(server.url, reconnect=Backoff()) as client:
            with pytest.raises(TypeError, match=message):
                client.init(state)
            assert server.accepted == 0
            client.init([0.0, 0.0])
            with pytest.raises(TypeError, match=message):
                client.send(1.0, state)
            with pytest.raises(TypeError, match=message.replace("the state", r"the state\['a'\]")):
                client.send(1.0, {"a": state})
            assert client.send(1.0, [0.0, 1.0]) == 1

    def test_version_one_carries_states_of_any_kind_but_masked_values(self, start_server):
        server = start_server()
        with Client(server.url, protocol=1) as client:
            client.init([0.0, None])
            with pytest.raises(TypeError, match="masked values, which mean nothing"):
                client.send(1.0, {"seen": [HALF_MASKED], "word": "left"})
            with pytest.raises(TypeError, match="masked values, which mean nothing"):
                client.send(1.0, HALF_MASKED)
        assert server.exchanges[-1].state == [0.0, None]

    @pytest.mark.parametrize(
        "state",
        [np.ma.array([3, 4], mask=False), Elsewhere([3, 4]), np.array([3, 4], np.longdouble)],
    )
    def test_a_state_that_numpy_can_read_is_sent_as_an_array(self, server, state):
        with Client(server.url) as client:
            client.init(state)
        assert server.steps[0].observations.tolist() == [[3, 4]]

    def test_bytes_stay_bytes_in_lists_and_in_other_libraries(self, server):
        with Client(server.url) as client:
            client.init([np.uint8([1, 2]), np.uint8([3, 4])])
            client.init(Elsewhere(np.uint8([1])))
        assert [steps.observations.dtype for steps in server.steps] == [np.uint8] * 2

    @pytest.mark.parametrize("state", [[0.0, np.nan], np.array([0, np.inf], np.float32)])
    def test_a_state_is_finite(self, server, state):
        with Client(server.url) as client:
            client.init([0.0, 0.0])
            for send in (
                lambda: client.send(1.0, state),
                lambda: client.truncate(1.0, state),
                lambda: client.init(state),
            ):
                with pytest.raises(ValueError, match=r"the state\[1\] is (nan|inf)"):
                    send()
            with pytest.raises(ValueError, match="the state is nan"):
                client.send(1.0, np.nan)
            assert client.send(1.0, [0.0, 1.0]) == 1
        assert len(server.steps) == 2

    def test_small_arrays_go_as_they_are_in_version_two_and_as_lists_in_version_one(
        self, server, start_server
    ):
        state = np.array([0.5, 0.25], np.float32)
        old = start_server()
        for url, version in ((server.url, 2), (old.url, 1)):
            with Client(url, protocol=version) as client:
                client.init(state)
                client.send(1.0, state)
        assert [steps.observations.dtype for steps in server.steps] == [np.float32] * 2
        assert [exchange.state for exchange in old.exchanges] == [[0.5, 0.25]] * 2

    def test_bytes_stay_bytes_in_version_one_so_that_they_are_scaled_as_in_two(self, start_server):
        old = start_server()
        with Client(old.url, protocol=1) as client:
            ram = np.array([0, 255], np.uint8)
            client.init({"ram": ram, "byte": ram[1], "number": ram[1:].sum(), "speed": [0.5]})
        (message,) = old.messages
        state = decode(message[-1])
        assert (state["number"], state["speed"]) == (255, [0.5])
        assert (state["ram"].dtype, state["byte"].dtype) == (np.uint8, np.uint8)
        assert (state["ram"].tolist(), state["byte"].tolist()) == ([0, 255], 255)

    @pytest.mark.parametrize("version", [1, 2])
    def test_actions_may_be_written_to(self, start_recording_server, start_server, version):
        action = np.zeros(2, np.float32)
        if version == 2:
            server = start_recording_server(action=action)
        else:
            payload = ServerCodec().encode([action], [])
            server = start_server(lambda _: len(payload).to_bytes(4, "little") + payload)
        with Client(server.url, protocol=version) as client:
            answers = [client.init([0.0]), client.send(1.0, [0.0]), client.send(1.0, [0.0])]
            for answered in answers:
                np.add(answered, 1, out=answered)
            assert [answered.tolist() for answered in answers] == [[1, 1]] * 3


def answer(environments, kinds, actions=(1, 1), scores=()):
    return binary.encode_answers(
        np.array(environments), flags(*kinds), np.array(actions), np.array(scores, float)
    )


class TestAnswersAboutSomethingElse:
    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (answer([1, 0], [0, 0]), r"asked about the environments \[0, 1\].* about \[1, 0\]"),
            (answer([0, 7], [0, 0]), r"it answered about \[0, 7\]"),
            (answer([0], [0], [1]), r"it answered about \[0\]"),
            (answer([0, 1], [TERMINATED, 0], [1], [1]), r"are of the kinds \[2, 1\], not \[1, 1\]"),
            (answer([0, 1], [TERMINATED | START, 0], (1, 1), [1]), r"\[3, 1\], not \[1, 1\]"),
        ],
    )
    @pytest.mark.parametrize("plain_ones_before", [0, 3])
    def test_they_are_a_failure_and_close(self, vector, server, reply, message, plain_ones_before):
        for _ in range(plain_ones_before):
            vector.send(ONES, STATES)
        server.reply = lambda number, steps: reply
        with pytest.raises(Failure, match=f"broke the protocol: .*{message}"):
            vector.send(ONES, STATES)
        with pytest.raises(Failure, match="there is no connection"):
            vector.send(ONES, STATES)

    def test_an_answer_for_the_wrong_one_of_two_is_noticed(self, vector, server):
        server.reply = lambda number, steps: answer([0, 1], [TERMINATED, 0], [1], [1])
        with pytest.raises(Failure, match=r"are of the kinds \[2, 1\], not \[1, 2\]"):
            vector.exchange(Steps([0, 1], flags(0, TERMINATED), ONES, STATES[:1], ()))

    def test_plain_answers_to_others_than_before_are_compared_again(self, vector, server):
        server.reply = lambda number, steps: answer([0], [0], [1])
        alone = [Steps(np.array([i]), flags(0), ONES[:1], STATES[:1], ()) for i in (0, 1)]
        for _ in range(3):
            assert vector.exchange(alone[0]).actions.tolist() == [1]
        with pytest.raises(Failure, match=r"asked about the environments \[1\]"):
            vector.exchange(alone[1])

    def test_one_environment_alone_is_no_exception(self, server):
        server.reply = lambda number, steps: answer([3], [0], [1])
        with Client(server.url) as client, pytest.raises(Failure, match=r"it answered about \[3\]"):
            client.init([0.0])
