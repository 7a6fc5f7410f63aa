"""PPO in one process: an actor, a replay, and a learner that draws from it."""

import importlib
from collections import deque
from contextlib import suppress

import numpy as np
from driven_learner import DrivenLearner
from learning_parts import Driven, wait_until

from relaax.algorithm_base import NewValues, NullMetrics, NullSaver
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.replay.replay import NotReady
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

SMALL = {
    "state_size": [3], "action_size": 2, "hidden_layers": [8], "episode_len": 8,
    "rollouts_per_batch": 4, "passes": 2, "minibatches": 2, "seed": 3,
}  # fmt: skip


class Storing:
    """An experience sink that stores steps in a replay, as soon as it takes them."""

    def __init__(self, replay):
        self._replay = replay
        self._next = {}
        self._waiting = deque()
        #: Of the parameters that have chosen the newest actions.
        self.version = 0

    def warm_up(self):
        """Do nothing."""

    def put(self, steps):
        self.version = max(self.version, *steps.columns["version"].tolist())
        self._waiting.extend(steps.chosen(np.array([index])) for index in range(len(steps)))
        with suppress(NotReady):
            self.flush()

    def flush(self):
        """Store what waits."""
        while self._waiting:
            one = self._waiting[0]
            slot = int(one.slots[0])
            self._next[slot] = self._replay.append(
                "worker", slot, self._next.get(slot, 0), one.columns, one.flags
            )
            self._waiting.popleft()

    def close(self):
        """Do nothing."""


class Played:
    """Environments of random observations, whose episodes end in all ways."""

    def __init__(self, ppo, section, environments=4):
        self.config = ppo.Config(section)
        self.settings = self.config.settings
        self.server = ppo.ParameterServer(self.config, NullSaver(), NullMetrics()).bridge()
        spec = ppo.replay_spec(self.config)
        self.replay = spec.make(np.random.default_rng(0), lease_s=1000.0)
        self.replay.open_writer("worker", spec.schema)
        self.learner = DrivenLearner(ppo.make_learner(self.config, 3))
        self.server.push(NewValues(self.learner.vector(), 0))
        self.storing = Storing(self.replay)
        self.agent = Driven(ppo.make_batch_agent(self.config, self.server, 0, False, self.storing))
        self.slots = self.agent.open(environments)
        self.random = np.random.default_rng(7)
        self._iteration = 0
        tensors = ParameterTensors(self.config.network)
        self._unpack = tensors.unpack
        self.size = self.config.network.manifest.size
        #: As those of the learner.
        builder = ppo.Builder(self.config)
        self.graphs, self._given = builder.method(tensors), builder.knobs
        self._knobs = importlib.import_module(f"{ppo.__name__}.adaptation").Knobs
        self.flags = np.full(environments, START)

    def play(self):
        """Play until there is a batch; return it as the learner wants it."""
        while True:
            with suppress(NotReady):
                sample = self.replay.sample("rollouts", self.settings.rollouts_per_batch, 0.0)
                return self.learner.inputs["rollouts"].prepare(sample)
            self.move()

    def parameters(self):
        """Return the network of the learner."""
        return self._unpack(self.learner.vector()[: self.size])

    def gradient(self, parameters, minibatch, knobs):
        self._given.now = knobs
        return self.graphs.gradient(parameters, minibatch)

    def knobs(self):
        """Return what the learner has adapted."""
        return self._knobs(*self.learner.state()["knobs"].tolist())

    def move(self):
        """Let each environment take a step."""
        count = len(self.slots)
        truncated = self.flags & TRUNCATED != 0
        steps = Steps(
            environments=self.slots,
            flags=self.flags.astype(np.uint8),
            rewards=self.random.normal(size=count),
            observations=self.states(count),
            finals=self.states(int(np.count_nonzero(truncated))),
        )
        self.actions = self.agent.act(steps)
        ends = self.random.choice(
            [0, TERMINATED | START, TRUNCATED | FINAL | START, START], count,
            p=[0.7, 0.1, 0.1, 0.1],
        )  # fmt: skip
        self.flags = ends

    def states(self, count):
        size = self.settings.state_size
        if not isinstance(size, dict):
            return self.state(size, count)
        return {name: self.state(shape, count) for name, shape in size.items()} | (
            {} if self.settings.mask is None else {self.settings.mask.name: self.masks(count)}
        )

    def state(self, shape, count):
        if len(shape) > 1:
            return self.random.integers(0, 255, (count, *shape)).astype(np.uint8)
        return (5 + 3 * self.random.normal(size=(count, *shape))).astype(np.float32)

    def masks(self, count):
        masks = self.random.integers(0, 2, (count, self.settings.mask.outputs))
        masks[:, 0] = 1
        return masks.astype(np.uint8)

    def publish(self):
        """Let the actor act with what was learnt."""
        self._iteration += 1
        self.server.push(NewValues(self.learner.vector(), self._iteration))
        wait_until(lambda: self.move() or self.storing.version == self._iteration)

    def close(self):
        self.agent.close()
