"""What runs in a worker's process, in this one: hellos, exit statuses, seeds."""

import contextlib
import signal
import socket
from types import SimpleNamespace

import numpy as np
import pytest
from served_worker import DEADLINE_S, Oracle, Stub, encoded, settings

from relaax.algorithm_base import AgentBase
from relaax.errors import BridgeError, ConfigurationError, ParameterServerAway
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode, Hello
from relaax.server.rlx_server.tally import private_row
from relaax.server.rlx_server.worker.process import ALGORITHM_HAS_FAILED, run_connection_worker
from relaax.server.rlx_server.worker.settings import Purpose, first_seed, seed_after
from relaax.spaces import box, discrete
from relaax.steps import START

HEAD = b"\x01RLX"


class Algorithm:
    """An algorithm as a worker sees it, whose package has batches or not."""

    def __init__(self, batch_agent=None):
        self.stub = Stub()
        self.batch_agent = batch_agent
        self.made_with = []

    def has_learner(self, config):
        return False

    @property
    def knows_batches(self):
        return self.batch_agent is not None

    def BridgeControl(self):  # noqa: N802
        return SimpleNamespace(parameter_server_stub=self._stub)

    def _stub(self, address):
        assert address == "nowhere:1"
        return self.stub

    def make_batch_agent(self, config, stub, seed, learns_in_background):
        assert stub is self.stub
        self.made_with.append((seed, learns_in_background))
        return self.batch_agent

    def make_agent(self, config, stub, seed):
        self.made_with.append(seed)
        return Constant()


class Constant(AgentBase):
    def __init__(self):
        pass

    def act(self, state):
        return 7

    def reward_and_act(self, reward, state):
        return 7

    def reward_and_reset(self, reward):
        return 0.0


def talk(*messages, algorithm=None, seed=0, **changed):
    """Return the exit status of a worker that gets these messages, and what it answers."""
    made = settings(algorithm=algorithm, parameter_server="nowhere:1", **changed)
    ours, theirs = socket.socketpair()
    with contextlib.closing(FrameConnection(ours, frame_timeout_s=DEADLINE_S)) as client:
        for message in messages:
            client.send(message)
        ours.shutdown(socket.SHUT_WR)
        status = run_connection_worker(
            made, seed, private_row(), made.open_connection(theirs), "a test"
        )
        with contextlib.suppress(ConnectionError):
            return status, list(iter(client.receive, None))


def refusal_of(hello, **changed):
    status, (answer,) = talk(hello, **changed)
    assert status == 0
    with pytest.raises(binary.Error) as said:
        binary.raise_if_error(answer)
    return said.value


@pytest.mark.parametrize(
    ("hello", "code", "reason"),
    [
        (HEAD + b"\x03\0\0\0{}", ErrorCode.VERSION, "version 3 was asked for"),
        (HEAD + b'\x02\0\0\0{"environments": 0}', ErrorCode.PROTOCOL, "1 to 65535, not 0"),
        (HEAD + b"\x02\0\0\0[", ErrorCode.PROTOCOL, "a hello is not JSON"),
        (HEAD, ErrorCode.PROTOCOL, "this is no hello"),
        (
            HEAD + b'\x02\0\0\0{"environment": "\\ud800"}',
            ErrorCode.PROTOCOL,
            "environment is a string",
        ),
        (
            HEAD + b'\x02\0\0\0{"environments": 65}',
            ErrorCode.MISMATCH,
            "may carry 64 environments (--max-environments of the RLX server), this one would",
        ),
    ],
)
def test_a_hello_that_cannot_be_welcomed_is_answered_with_the_reason(hello, code, reason):
    said = refusal_of(hello, max_environments=64)
    assert reason in said.text
    assert said.code == code


CONFIG = SimpleNamespace(
    observation_space=lambda: box("float32", (4,)), action_space=lambda: discrete(2)
)


@pytest.mark.parametrize(
    ("announced", "reason"),
    [
        (
            {"observation_space": box("float32", (3,)), "environment": "Corridor"},
            'the observations of Corridor are {"type": "Box", "dtype": "float32", "shape": [3]}, '
            "state_size in the algorithm section of the server's configuration asks for "
            '{"type": "Box", "dtype": "float32", "shape": [4]}',
        ),
        (
            {"action_space": discrete(3)},
            'the actions are {"type": "Discrete", "n": 3}, action_size in the algorithm section of '
            'the server\'s configuration asks for {"type": "Discrete", "n": 2}',
        ),
        (
            {"action_space": {**discrete(2), "start": 1}},
            'the actions are {"type": "Discrete", "n": 2, "start": 1}, action_size in the '
            "algorithm section of the server's configuration asks for "
            '{"type": "Discrete", "n": 2}; actions are counted from 0: let the client convert '
            "them, and announce no other start",
        ),
    ],
)
def test_spaces_that_do_not_fit_are_refused_with_both_written_out(announced, reason):
    said = refusal_of(
        binary.encode_hello(Hello("", **{"environment": "", **announced})), config=CONFIG
    )
    assert (said.text, said.code) == (reason, ErrorCode.MISMATCH)


def test_a_space_as_large_as_a_frame_is_refused_in_a_short_message(caplog):
    """Written out, it would not fit into the frame of the answer, and fill the log."""
    limit = 10_000
    space = b'{"observation_space":{"type":"Box","shape":[' + b"1," * 4900 + b"1]}}"
    assert len(space) < limit - 50
    said = refusal_of(HEAD + b"\x02\0\0\0" + space, config=CONFIG, max_frame_bytes=limit)
    assert said.text.startswith('the observations are {"type": "Box", "shape": [1, 1, ')
    assert said.text.endswith('{"type": "Box", "dtype": "float32", "shape": [4]}')
    assert len(said.text) < 1000
    assert len(caplog.text) < 2000


def test_a_hello_that_fits_is_welcomed_with_the_servers_spaces():
    oracle = Oracle()
    hello = binary.encode_hello(Hello("", "", 3, action_space=discrete(2)))
    status, (welcome,) = talk(hello, algorithm=Algorithm(oracle), config=CONFIG)
    assert status == 0
    assert binary.decode_welcome(welcome).observation_space == box("float32", (4,))
    assert binary.decode_welcome(welcome).action_space == discrete(2)


def test_nothing_heavy_is_made_for_a_client_that_is_refused_or_silent():
    algorithm = Algorithm(Oracle())
    talk(HEAD + b"\x03\0\0\0{}", algorithm=algorithm)
    talk(algorithm=algorithm)
    assert algorithm.made_with == []


def test_a_batch_agent_is_made_with_the_workers_seed_and_learns_where_it_acts():
    algorithm = Algorithm(Oracle())
    hello = binary.encode_hello(Hello("", ""))
    status, _ = talk(hello, encoded([0], [START], [0], [1]), algorithm=algorithm, seed=12)
    assert status == 0
    assert algorithm.made_with == [(first_seed(12, Purpose.BATCH_AGENT), False)]
    assert algorithm.batch_agent.warmed == []
    assert algorithm.batch_agent.is_closed
    assert algorithm.stub.is_closed


def test_agents_without_batches_get_seeds_that_no_other_worker_has():
    algorithm = Algorithm()
    hello = binary.encode_hello(Hello("", "", 3))
    step = encoded([0, 2], [START, START], [0, 0], [1, 1])
    status, (_, answer) = talk(hello, step, algorithm=algorithm, seed=12)
    assert status == 0
    assert binary.decode_answers(answer).actions.tolist() == [7, 7]
    assert len(set(algorithm.made_with)) == 3
    again, other = Algorithm(), Algorithm()
    talk(hello, step, algorithm=again, seed=12)
    talk(hello, step, algorithm=other, seed=13)
    assert again.made_with == algorithm.made_with
    assert set(other.made_with).isdisjoint(algorithm.made_with)


@pytest.mark.parametrize("worker", [0, 2**32 - 1, (2**64 - 1) << 32])
def test_any_generator_of_random_numbers_takes_the_seeds(worker):
    algorithm, batches = Algorithm(), Algorithm(Oracle())
    told = []
    batches.batch_agent.connected = lambda slots, environments: told.extend(environments)
    hello = binary.encode_hello(Hello("", "", 3))
    talk(hello, algorithm=algorithm, seed=worker)
    talk(hello, algorithm=batches, seed=worker)
    seeds = [*algorithm.made_with, batches.made_with[0][0], *(each.seed for each in told)]
    assert len(set(seeds)) == len(seeds) == 7
    for seed in seeds:
        assert type(seed) is int
        np.random.RandomState(seed)
        np.random.RandomState([7, seed])


def test_seeds_after_the_largest_begin_again_at_zero():
    assert [seed_after(2**32 - 2, number) for number in range(4)] == [2**32 - 2, 2**32 - 1, 0, 1]


@pytest.mark.parametrize(
    ("error", "expected_status", "code"),
    [
        (BridgeError("it refuses"), 3, ErrorCode.ALGORITHM),
        (ConfigurationError("it is wrong"), 2, ErrorCode.ALGORITHM),
        (ParameterServerAway("it was away"), 1, ErrorCode.SERVER),
    ],
)
@pytest.mark.parametrize("when", ["make", "act"])
def test_an_error_of_the_training_is_logged_and_the_client_gets_the_reason(
    error, expected_status, code, when, caplog
):
    """The RLX server goes on: for the next connection there is another worker."""

    class Failing(Oracle):
        def act(self, transitions, states, finals):
            raise error

    algorithm = Algorithm(Failing())
    if when == "make":

        def fail(*arguments):
            raise error

        algorithm.make_batch_agent = fail
    hello = binary.encode_hello(Hello("", ""))
    status, answers = talk(hello, encoded([0], [START], [0], [1]), algorithm=algorithm)
    assert status == expected_status
    with pytest.raises(binary.Error, match=str(error)) as said:
        binary.raise_if_error(answers[-1])
    assert said.value.code == code
    assert f"the worker ends: {error}" in caplog.text
    assert algorithm.stub.is_closed


def test_another_error_of_an_algorithm_is_one_traceback_and_a_reason_for_the_client(caplog):
    class Broken(Oracle):
        def act(self, transitions, states, finals):
            raise ZeroDivisionError

    algorithm = Algorithm(Broken())
    hello = binary.encode_hello(Hello("", ""))
    status, answers = talk(hello, encoded([0], [START], [0], np.ones(1)), algorithm=algorithm)
    assert status == ALGORITHM_HAS_FAILED
    with pytest.raises(binary.Error, match="the algorithm failed: ZeroDivisionError") as said:
        binary.raise_if_error(answers[-1])
    assert said.value.code == ErrorCode.ALGORITHM
    assert caplog.text.count("Traceback") == 1
    assert algorithm.stub.is_closed


def test_memory_that_runs_out_while_acting_is_no_error_of_the_algorithm():
    class Large(Oracle):
        def act(self, transitions, states, finals):
            raise MemoryError

    algorithm = Algorithm(Large())
    hello = binary.encode_hello(Hello("", ""))
    with pytest.raises(MemoryError):
        talk(hello, encoded([0], [START], [0], np.ones(1)), algorithm=algorithm)
    assert algorithm.stub.is_closed


def test_the_signals_of_this_process_stay_the_same():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)]
    talk()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)] == before
