"""Small Gymnasium environments of every space, played by both runners."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client import Client, VectorClient
from relaax.client.gymnasium_observations import observation_space_as_json
from relaax.client.gymnasium_tasks import GymnasiumRunner
from relaax.client.simulator import RunOutcome
from relaax.client.vector_runner import VectorRunner
from relaax.observations import arrays_in, mapped
from relaax.protocol.json import ServerCodec
from relaax.protocol.json.codec import decode
from relaax.spaces import space_of

SIZE = 3


def box(*shape, low=0.0, high=1.0, dtype=np.float32):
    return spaces.Box(low, high, shape, dtype)


class Sampled(gymnasium.Env):
    """Observes what its space can hold; takes what its action space contains, and counts it."""

    def __init__(self, observation_space, action_space, ending="terminated"):
        self.observation_space = observation_space
        self.action_space = action_space
        self._ending = ending
        self.taken = 0

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken += 1
        self._steps += 1
        is_over = self._steps == SIZE
        ended = (is_over and self._ending == "terminated", is_over and self._ending == "truncated")
        return self.observation_space.sample(), 1.0, *ended, {}


class InVector(Sampled):
    """Takes numbers as Gymnasium's vector environments hand them out: as numpy's scalars."""

    def step(self, action):
        return super().step(np.asarray(action) if isinstance(action, np.floating) else action)


OBSERVED = {
    "box": box(2, 2),
    "bytes": box(2, 2, low=0, high=255, dtype=np.uint8),
    "half-open": box(2, low=0, high=np.inf),
    "infinite": box(2, low=-np.inf, high=np.inf),
    "discrete": spaces.Discrete(4, start=2),
    "multi-discrete": spaces.MultiDiscrete([3, 2], start=[1, 0]),
    "multi-binary": spaces.MultiBinary([2, 2]),
    "dict": spaces.Dict(
        {"camera": box(2, 2, high=255, dtype=np.uint8), "gear": spaces.Discrete(3)}
    ),
    "tuple": spaces.Tuple([box(2), spaces.MultiBinary(3)]),
    "number": box(),
    "nested": spaces.Dict({"arm": spaces.Dict({"ends": spaces.Tuple([box(1), box()])})}),
}

#: Each action space, and what a server answers: mostly at the edge of what it may.
ACTED = {
    "discrete": (spaces.Discrete(3, start=-1), 2),
    "multi-discrete": (spaces.MultiDiscrete([3, 2], start=[5, 0]), [2, 1]),
    "multi-binary": (spaces.MultiBinary(3), [1, 0, 1]),
    "box": (box(2, low=-1), np.float32([-5, 5])),
    "half-open": (box(2, low=0, high=np.inf), np.float32([-5, 5])),
    "infinite": (box(2, low=-np.inf, high=np.inf), np.float32([-1e30, 1e30])),
    "whole": (box(2, low=0, high=255, dtype=np.uint8), np.float32([-5, 500])),
    "number": (box(low=-1), np.float32(-5)),
    "two-dimensional bits": (spaces.MultiBinary([2, 2]), [[1, 0], [0, 1]]),
    "two-dimensional choices": (spaces.MultiDiscrete([[3, 2], [2, 4]]), [2, 1, 1, 3]),
    "dict": (spaces.Dict({"a": box(1), "b": spaces.Tuple([box(1)])}), np.float32([-5, 5])),
    "tuple": (spaces.Tuple([spaces.Discrete(3), spaces.MultiBinary(1)]), [2, 1]),
}


def as_said(observations):
    """Return the space of observations that have arrived, as a hello says it."""
    return space_of(mapped(np.asarray, observations))


def shapes(space):
    inside = space["spaces"] if space["type"] == "Dict" else {"": space}
    return {name: part["shape"] for name, part in inside.items()}


@pytest.mark.parametrize("ending", ["terminated", "truncated"])
@pytest.mark.parametrize("observed", OBSERVED)
class TestObservations:
    def test_one_environment(self, server, observed, ending):
        environment = Sampled(OBSERVED[observed], spaces.Discrete(2), ending)
        with Client(server.url) as client:
            result = GymnasiumRunner(environment, client, seed=1).run(episodes=2)
        assert result.outcome is RunOutcome.FINISHED
        assert environment.taken == 2 * SIZE
        self.check(server, OBSERVED[observed], ending)

    def test_one_environment_in_version_1(self, start_server, observed, ending):
        environment = Sampled(OBSERVED[observed], spaces.Discrete(2), ending)
        server = start_server()
        with Client(server.url, protocol=1) as client:
            result = GymnasiumRunner(environment, client, seed=1).run(episodes=2)
        assert result.outcome is RunOutcome.FINISHED
        assert environment.taken == 2 * SIZE
        announced = shapes(observation_space_as_json(OBSERVED[observed]))
        states = [
            decode(message[-1])
            for message in server.messages
            if message[0] in ("act", "reward_and_act")
        ]
        assert len(states) == 2 * (SIZE + (ending == "truncated"))
        for state in states:
            assert shapes(space_of(mapped(lambda part: np.asarray([part]), state))) == announced

    @pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
    def test_many(self, server, observed, ending, mode):
        def make():
            return Sampled(OBSERVED[observed], spaces.Discrete(2), ending)

        environments = SyncVectorEnv([make] * 2, autoreset_mode=mode)
        with VectorClient(server.url, 2) as client:
            result = VectorRunner(environments, client, seed=1).run(episodes=4)
        assert result.outcome is RunOutcome.FINISHED
        self.check(server, OBSERVED[observed], ending)

    def check(self, server, space, ending):
        """What has arrived is what the hello would say, and so are the last observations."""
        announced = shapes(observation_space_as_json(space))
        seen = [steps.observations for steps in server.steps if steps.actions]
        last = [steps.finals for steps in server.steps if len(steps.finals)]
        assert all(shapes(as_said(states)) == announced for states in seen + last)
        assert all(np.isfinite(array).all() for states in seen for array in arrays_in(states))
        assert bool(last) is (ending == "truncated")


@pytest.mark.parametrize("acted", ACTED)
class TestActions:
    def test_one_environment(self, start_recording_server, acted):
        space, action = ACTED[acted]
        environment = Sampled(box(1), space)
        server = start_recording_server(action=action)
        with Client(server.url) as client:
            GymnasiumRunner(environment, client).run(episodes=2)
        assert environment.taken == 2 * SIZE

    def test_one_environment_in_version_1(self, start_server, acted):
        space, action = ACTED[acted]
        environment = Sampled(box(1), space)
        payload = ServerCodec().encode([action if np.ndim(action) == 0 else np.asarray(action)], [])
        framed = len(payload).to_bytes(4, "little") + payload
        others = {"reward_and_reset": ["reset", 10.0], "scalar_metric": b""}
        server = start_server(lambda exchange: others.get(exchange.message[0], framed))
        with Client(server.url, protocol=1) as client:
            GymnasiumRunner(environment, client).run(episodes=2)
        assert environment.taken == 2 * SIZE

    @pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
    def test_many(self, start_recording_server, acted, mode):
        space, action = ACTED[acted]
        environments = SyncVectorEnv([lambda: InVector(box(1), space)] * 2, autoreset_mode=mode)
        server = start_recording_server(action=action)
        with VectorClient(server.url, 2) as client:
            VectorRunner(environments, client).run(episodes=4)
        assert all(environment.taken >= 2 * SIZE for environment in environments.envs)
