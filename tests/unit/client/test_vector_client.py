"""Many environments on one connection, against a server of this project's own pieces."""

import numpy as np
import pytest

from relaax.client import Client, Failure, VectorClient
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps


def test_the_hello_describes_the_connections_environments(server):
    space = {"type": "Box", "dtype": "float32", "shape": [1]}
    with VectorClient(server.url, 3, environment="Corridor", action_space=None) as client:
        client.init(np.zeros((3, 1), np.float32))
    (hello,) = server.hellos
    assert (hello.environment, hello.environments, hello.observation_space) == (
        "Corridor",
        3,
        space,
    )
    assert len(hello.run_id) == 32


def test_every_client_has_a_run_id_of_its_own(server):
    for _ in range(2):
        with VectorClient(server.url, 1) as client:
            client.init(np.zeros((1, 1), np.float32))
    assert len({hello.run_id for hello in server.hellos}) == 2


def test_a_step_of_all_environments_is_one_message(server):
    with VectorClient(server.url, 2) as client:
        observations = np.array([[1], [2]], np.float32)
        assert client.init(observations).tolist() == [1, 1]
        assert client.send(np.array([0.5, -1.0]), observations + 1).tolist() == [1, 1]
    assert server.told == [([START, START], [0, 0], [1, 2], []), ([0, 0], [0.5, -1.0], [2, 3], [])]


def test_episodes_that_ended_start_again_in_the_same_message(server):
    with VectorClient(server.url, 3) as client:
        observations = np.zeros((3, 1), np.float32)
        client.init(observations)
        terminated, truncated = np.array([True, False, True]), np.array([False, True, True])
        finals = np.array([[7]], np.float32)
        client.send(np.ones(3), observations, terminated, truncated, finals)
    ends = [TERMINATED | START, TRUNCATED | FINAL | START, TERMINATED | START]
    assert server.told[1] == (ends, [1, 1, 1], [0, 0, 0], [7])


def test_environments_that_are_ready_go_ahead(server):
    with VectorClient(server.url, 3) as client:
        client.init(np.zeros((3, 1), np.float32))
        ready = Steps(
            np.array([2]), np.zeros(1, np.uint8), np.ones(1), np.ones((1, 1), np.float32), ()
        )
        assert client.exchange(ready).environments.tolist() == [2]


def test_the_servers_reason_is_in_the_failure(server):
    refusal = binary.encode_error(ErrorCode.MISMATCH, "the observations are too few")
    server.greet = lambda number: refusal
    for client in (VectorClient(server.url, 1), Client(server.url)):
        with client, pytest.raises(Failure, match="too few") as refused:
            client.init(np.zeros((1, 1), np.float32))
        assert refused.value.code == ErrorCode.MISMATCH


def test_metrics_travel_beside_the_steps(server):
    with VectorClient(server.url, 1) as client:
        client.metrics().scalar("dropped", 1.0)
        client.init(np.zeros((1, 1), np.float32))
        client.metrics().scalar("speed", 2.5, 7)
        client.send(np.ones(1), np.zeros((1, 1), np.float32))
    assert [(m.name, m.y, m.x) for m in server.metrics] == [("speed", 2.5, 7.0)]


@pytest.mark.parametrize("count", [0, -1, 65536])
def test_an_impossible_number_of_environments_is_refused(count):
    with pytest.raises(ValueError, match=f"1 to 65535 on one connection, not {count}"):
        VectorClient("localhost:1", count)


class TestOneEnvironmentInVersionTwo:
    def test_the_client_speaks_it_without_being_asked(self, server):
        with Client(server.url) as client:
            assert client.init([0.5, 1]) == 1
            assert client.send(2.0, [1, 2]) == 1
            assert client.reset(3.0) == 1.0
            client.init(np.zeros(2, np.float32))
            assert client.truncate(4.0, [3, 4]) == 1.0
        assert server.told == [
            ([START], [0], [0.5, 1], []),
            ([0], [2], [1, 2], []),
            ([TERMINATED], [3], [], []),
            ([START], [0], [0, 0], []),
            ([TRUNCATED | FINAL], [4], [], [3, 4]),
        ]

    @pytest.mark.parametrize(("state", "dtype"), [(5, "int64"), (5.0, "float64")])
    def test_a_number_is_a_state(self, server, state, dtype):
        with Client(server.url) as client:
            client.init(state)
        assert server.hellos[0].observation_space == {"type": "Box", "dtype": dtype, "shape": []}
        assert server.steps[0].observations.tolist() == [state]

    def test_a_state_that_is_no_array_needs_version_one(self, server):
        with Client(server.url) as client:
            client.init([0.0])
            with pytest.raises(TypeError, match="protocol=1"):
                client.send(1.0, {"speed": "fast"})
            assert client.send(1.0, [1.0]) == 1

    def test_version_one_can_be_asked_for(self, start_server):
        server = start_server()
        with Client(server.url, protocol=1) as client:
            client.init([1, 2])
        assert (server.hellos, server.verbs) == (0, ["act"])

    def test_version_two_alone_can_be_asked_for(self, start_server):
        with (
            Client(start_server().url, protocol=2) as client,
            pytest.raises(Failure, match="closed the connection at the hello"),
        ):
            client.init([1, 2])


class TestArraysThatAreFilledAgain:
    """The caller's arrays are its own: it may refill them after every call."""

    def test_the_environments_of_the_moment_are_reported(self, server):
        ready, reported = np.array([0]), []
        with VectorClient(server.url, 3) as client:
            client.init(np.zeros((3, 1), np.float32))
            for number in (0, 2, 1):
                ready[0] = number
                steps = Steps(ready, np.zeros(1, np.uint8), np.ones(1), np.ones((1, 1)), ())
                reported.append(client.exchange(steps).environments.tolist())
        assert [steps.environments.tolist() for steps in server.steps[1:]] == [[0], [2], [1]]
        assert reported == [[0], [2], [1]]

    def test_answers_for_the_environments_before_are_refused(self, server):
        ready = np.array([0])
        steps = Steps(ready, np.zeros(1, np.uint8), np.ones(1), np.ones((1, 1)), ())
        with VectorClient(server.url, 3) as client:
            client.init(np.zeros((3, 1), np.float32))
            for _ in range(5):
                client.exchange(steps)
            server.reply = lambda number, steps: binary.encode_answers(
                np.array([0]), np.zeros(1, np.uint8), np.ones(1, np.int64), np.zeros(0)
            )
            ready[0] = 2
            with pytest.raises(Failure, match=r"asked about the environments \[2\]"):
                client.exchange(steps)

    def test_the_flags_of_the_moment_are_reported(self, server):
        flags = np.zeros(2, np.uint8)
        steps = Steps(np.arange(2), flags, np.ones(2), np.ones((2, 1)), ())
        with VectorClient(server.url, 2) as client:
            client.init(np.zeros((2, 1), np.float32))
            for flag in (0, START, 0):
                flags[1] = flag
                client.exchange(steps)
        assert [steps.flags.tolist() for steps in server.steps[1:]] == [[0, 0], [0, START], [0, 0]]

    def test_answers_share_nothing_with_each_other_or_with_the_question(self, server):
        arrays = (np.arange(2), np.zeros(2, np.uint8), np.ones(2), np.zeros((2, 1), np.float32))
        with VectorClient(server.url, 2) as client:
            client.init(arrays[-1])
            answers = [client.exchange(Steps(*arrays, ())) for _ in range(3)]
        for answer in answers:
            for array in (answer.environments, answer.actions):
                np.add(array, 7, out=array)
        assert [answer.environments.tolist() for answer in answers] == [[7, 8]] * 3
        assert [answer.actions.tolist() for answer in answers] == [[8, 8]] * 3
        assert arrays[0].tolist() == [0, 1]
