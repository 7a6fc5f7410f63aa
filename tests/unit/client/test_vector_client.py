"""Many environments on one connection, against a server of this project's own pieces."""

import socket
import threading

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client import Client, Failure, VectorClient
from relaax.client.fleet import Outcome
from relaax.client.gymnasium_spaces import UnusableAction
from relaax.client.observer import RunObserver
from relaax.client.vector_runner import VectorRunner
from relaax.common.errors import ConfigurationError
from relaax.common.protocol import FrameConnection, binary
from relaax.common.protocol.binary import ErrorCode, Welcome
from relaax.common.steps import FINAL, START, TERMINATED, TRUNCATED, Steps, wants_action


class RecordingServer:
    """Welcomes one client after another, answers 1 everywhere and keeps what it was told."""

    def __init__(self, action=1):
        self.hellos = []
        self.steps = []
        self.metrics = []
        self.closes_after = None
        self.refuses = None
        self._action = action
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            frames = FrameConnection(connection)
            try:
                self._talk(frames)
            finally:
                frames.close()

    def _talk(self, frames):
        hello = binary.decode_hello(frames.receive())
        self.hellos.append(hello)
        if self.refuses:
            frames.send(binary.encode_error(ErrorCode.MISMATCH, self.refuses))
            return
        frames.send(binary.encode_welcome(Welcome()))
        while (payload := frames.receive()) is not None:
            metric = binary.decode_metric(payload)
            if metric is not None:
                self.metrics.append(metric)
                continue
            steps = binary.decode_steps(payload, hello.environments)
            self.steps.append(steps)
            if self.closes_after is not None and len(self.steps) == self.closes_after:
                return
            actions = np.full(int(wants_action(steps.flags).sum()), self._action)
            ended = int(np.count_nonzero(steps.flags & (TERMINATED | TRUNCATED)))
            frames.send(
                binary.encode_answers(steps.environments, steps.flags, actions, np.ones(ended))
            )


@pytest.fixture(name="server")
def _server():
    server = RecordingServer()
    yield server
    server.close()


class Corridor(gymnasium.Env):
    """Counts its steps; is over after ``length`` of them, in the way that ``ending`` says."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length, ending):
        self.length, self.ending = length, ending

    def reset(self, *, seed=None, options=None):
        self.place = 0
        return np.float32([0]), {}

    def step(self, action):
        self.place += 1
        is_over = self.place == self.length
        ended = (is_over and self.ending == "terminated", is_over and self.ending == "truncated")
        return np.float32([self.place]), self.place, *ended, {}


def corridors(mode, *kinds):
    return SyncVectorEnv([lambda kind=kind: Corridor(*kind) for kind in kinds], autoreset_mode=mode)


def told(server):
    """What was told: by message, flags, rewards, observations and final observations."""
    return [
        (
            steps.flags.tolist(),
            steps.rewards.tolist(),
            np.ravel(steps.observations).tolist(),
            np.ravel(steps.finals).tolist(),
        )
        for steps in server.steps
    ]


class Notes(RunObserver):
    def __init__(self):
        self.steps = 0
        self.returns = []

    def on_step(self, count=1):
        self.steps += count

    def on_episode(self, summary):
        self.returns.append((summary.episode_return, summary.length))


def test_the_hello_tells_what_the_connection_carries(server):
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


def test_a_step_of_everybody_is_one_message(server):
    with VectorClient(server.url, 2) as client:
        observations = np.array([[1], [2]], np.float32)
        assert client.init(observations).tolist() == [1, 1]
        assert client.send(np.array([0.5, -1.0]), observations + 1).tolist() == [1, 1]
    assert told(server) == [
        ([START, START], [0, 0], [1, 2], []),
        ([0, 0], [0.5, -1.0], [2, 3], []),
    ]


def test_episodes_that_ended_start_again_in_the_same_message(server):
    with VectorClient(server.url, 3) as client:
        observations = np.zeros((3, 1), np.float32)
        client.init(observations)
        terminated, truncated = np.array([True, False, True]), np.array([False, True, True])
        finals = np.array([[7]], np.float32)
        client.send(np.ones(3), observations, terminated, truncated, finals)
    ends = [TERMINATED | START, TRUNCATED | FINAL | START, TERMINATED | START]
    assert told(server)[1] == (ends, [1, 1, 1], [0, 0, 0], [7])


def test_those_that_are_ready_go_ahead(server):
    with VectorClient(server.url, 3) as client:
        client.init(np.zeros((3, 1), np.float32))
        ready = Steps(
            np.array([2]), np.zeros(1, np.uint8), np.ones(1), np.ones((1, 1), np.float32), ()
        )
        assert client.exchange(ready).environments.tolist() == [2]


def test_environments_that_start_again_within_a_step(server):
    environments = corridors(AutoresetMode.SAME_STEP, (2, "terminated"), (3, "truncated"))
    notes = Notes()
    with VectorClient(server.url, 2) as client:
        ended = VectorRunner(environments, client, observer=notes).run(episodes=2)
    assert ended.outcome is Outcome.FINISHED
    assert told(server) == [
        ([START, START], [0, 0], [0, 0], []),
        ([0, 0], [1, 1], [1, 1], []),
        ([TERMINATED | START, 0], [2, 2], [0, 2], []),
        ([0, TRUNCATED | FINAL | START], [1, 3], [1, 0], [3]),
    ]
    assert notes.returns == [(3.0, 2), (6.0, 3)]
    assert notes.steps == 6


def test_environments_that_take_a_step_to_start_again(server):
    environments = corridors(AutoresetMode.NEXT_STEP, (2, "terminated"), (3, "truncated"))
    notes = Notes()
    with VectorClient(server.url, 2) as client:
        VectorRunner(environments, client, observer=notes).run(episodes=3)
    assert told(server) == [
        ([START, START], [0, 0], [0, 0], []),
        ([0, 0], [1, 1], [1, 1], []),
        ([TERMINATED, 0], [2, 2], [2], []),
        ([START, TRUNCATED | FINAL], [0, 3], [0], [3]),
        ([0, START], [1, 0], [1, 0], []),
        ([TERMINATED, 0], [2, 1], [1], []),
    ]
    assert notes.returns == [(3.0, 2), (6.0, 3), (3.0, 2)]
    assert notes.steps == 8


def test_environments_that_do_not_start_again_are_refused(server):
    environments = corridors(AutoresetMode.DISABLED, (2, "terminated"))
    with (
        VectorClient(server.url, 1) as client,
        pytest.raises(ConfigurationError, match="must start episodes by themselves"),
    ):
        VectorRunner(environments, client)


def test_an_action_that_does_not_fit_is_named():
    server = RecordingServer(action=5)
    environments = corridors(AutoresetMode.SAME_STEP, (2, "terminated"))
    with (
        VectorClient(server.url, 1) as client,
        pytest.raises(UnusableAction, match="takes the actions 0 to 1, the server sent 5"),
    ):
        VectorRunner(environments, client).run(episodes=1)
    server.close()


def test_after_a_lost_connection_all_environments_start_again(server):
    server.closes_after = 3
    environments = corridors(AutoresetMode.SAME_STEP, (5, "terminated"), (5, "terminated"))
    with VectorClient(server.url, 2) as client:
        VectorRunner(environments, client).run(episodes=2)
    assert [flags for flags, *_ in told(server)[:5]] == [
        [START] * 2,
        [0, 0],
        [0, 0],
        [START] * 2,
        [0, 0],
    ]
    assert len(server.hellos) == 2
    assert server.hellos[0].run_id == server.hellos[1].run_id


def test_the_servers_reason_is_in_the_failure(server):
    server.refuses = "the observations are too few"
    for client in (VectorClient(server.url, 1), Client(server.url)):
        with client, pytest.raises(Failure, match="too few") as refused:
            client.init(np.zeros((1, 1), np.float32))
        assert refused.value.code == ErrorCode.MISMATCH


def test_an_old_server_is_named_as_such(start_server):
    with (
        VectorClient(start_server().url, 2) as client,
        pytest.raises(Failure, match="too old for many environments"),
    ):
        client.init(np.zeros((2, 1), np.float32))


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
        assert told(server) == [
            ([START], [0], [0.5, 1], []),
            ([0], [2], [1, 2], []),
            ([TERMINATED], [3], [], []),
            ([START], [0], [0, 0], []),
            ([TRUNCATED | FINAL], [4], [], [3, 4]),
        ]

    def test_a_number_is_a_state(self, server):
        with Client(server.url) as client:
            client.init(5)
        assert server.hellos[0].observation_space == {
            "type": "Box",
            "dtype": "float64",
            "shape": [],
        }
        assert server.steps[0].observations.tolist() == [5.0]

    def test_a_state_that_is_no_array_needs_version_one(self, server):
        with Client(server.url) as client:
            client.init([0.0])
            with pytest.raises(TypeError, match="protocol=1"):
                client.send(1.0, {"speed": 3})
            assert client.send(1.0, [1.0]) == 1

    def test_version_one_can_be_asked_for(self, start_server):
        server = start_server()
        with Client(server.url, protocol=1) as client:
            client.init([1, 2])
        assert (server.hellos, server.verbs) == (0, ["act"])

    def test_an_old_server_is_spoken_to_in_version_one(self, start_server):
        server = start_server()
        with Client(server.url) as client:
            assert client.init([1, 2]) == 1
        assert (server.hellos, server.accepted, server.verbs) == (1, 1, ["act"])

    def test_version_two_alone_can_be_asked_for(self, start_server):
        with (
            Client(start_server().url, protocol=2) as client,
            pytest.raises(Failure, match="closed the connection at the hello"),
        ):
            client.init([1, 2])
