"""An actor whose hooks can be followed, its environment and its parameter server, for tests."""

from contextlib import closing, contextmanager

import gymnasium
import numpy as np
from gymnasium import spaces

from relaax.acting.parameter_client import ParameterClient
from relaax.algorithm_base import ConfigBase, NewValues, NullMetrics
from relaax.compat.surreal import Acted, Actor, ActorSession, PullRule
from relaax.compat.surreal.experience import columns_of
from relaax.learning.steps import schema_of
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.published import PublishedParameters
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Transitions
from relaax.spaces import box, discrete


class Numbered(gymnasium.Env):
    """Episodes of ``length`` steps: states count them from 0, and so do rewards, from 1."""

    observation_space = spaces.Box(0, 100, (1,), np.float32)
    action_space = spaces.Discrete(10)

    def __init__(self, length=7, is_cut_off=False):
        self._length, self._is_cut_off = length, is_cut_off
        self._step = 0
        self.actions = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._observation(), {}

    def step(self, action):
        self.actions.append(action)
        self._step += 1
        is_over = self._step >= self._length
        terminated, truncated = is_over and not self._is_cut_off, is_over and self._is_cut_off
        return self._observation(), float(self._step), terminated, truncated, {"steps": self._step}

    def _observation(self):
        return np.array([self._step], np.float32)


class NumberedConfig(ConfigBase):
    """The spaces of ``Numbered``."""

    def __init__(self):
        super().__init__({})

    def observation_space(self):
        return box("float32", (1,))

    def action_space(self):
        return discrete(10)


class Served(ParameterService):
    """A parameter server that says how often it was asked."""

    def __init__(self, first=0.0):
        parameters = PublishedParameters(np.array([first], np.float32), clock=lambda: 12.5)
        super().__init__(parameters, NullMetrics())
        self.asked = []

    def pull(self, known=None, policy="default"):
        self.asked.append(known)
        return super().pull(known, policy)

    def publish(self, value, iteration):
        self.push(NewValues(np.array([value], np.float32), iteration))


class KeptSteps:
    """An ``ExperienceSink`` that keeps what it is given."""

    def __init__(self):
        self.batches = []

    def warm_up(self):
        pass

    def put(self, rollouts):
        self.batches.append(rollouts)

    def close(self):
        pass

    def column(self, name):
        return [value for batch in self.batches for value in batch.columns[name].tolist()]

    def flags(self):
        return [flag for batch in self.batches for flag in batch.flags.tolist()]

    def in_a_replay(self, steps, discount):
        """A replay whose only table has transitions over ``steps`` steps, of all that was kept."""
        schema = schema_of(columns_of(NumberedConfig()))
        table = TableSpec(Transitions(steps, discount), "fifo")
        replay = ReplaySpec(schema, 256, {"all": table}).make(np.random.default_rng(0), 60.0)
        replay.open_writer("actor", schema)
        first = 0
        for batch in self.batches:
            first = replay.append("actor", 0, first, batch.columns, batch.flags)
        return replay


class InterruptedSteps(KeptSteps):
    """A signal to end comes while batch ``number`` is put: that one is lost."""

    def __init__(self, number):
        super().__init__()
        self._left = number

    def put(self, rollouts):
        if self._left == 0:
            self._left = -1
            raise SystemExit(0)
        self._left -= 1
        super().put(rollouts)


class FollowedActor(Actor):
    """Acts with the number of its only parameter, and writes down which hooks are called."""

    def __init__(self, *parts):
        self.calls = []
        super().__init__(*parts)
        self.parameter = np.zeros(1, np.float32)

    def module_dict(self):
        return {"only": self.parameter}

    def act(self, obs):
        self.calls.append("act")
        return Acted(int(self.parameter[0]), log_probability=-float(obs[0]))

    def pre_episode(self):
        self.calls.append("pre_episode")
        super().pre_episode()

    def pre_action(self, obs):
        self.calls.append("pre_action")
        super().pre_action(obs)

    def post_action(self, obs, action, obs_next, reward, done, info):
        self.calls.append("post_action")
        self.last = (obs, action, obs_next, reward, done, info)
        super().post_action(obs, action, obs_next, reward, done, info)

    def post_episode(self):
        self.calls.append("post_episode")
        super().post_episode()

    def fetch_parameter(self):
        self.calls.append("fetch_parameter")
        super().fetch_parameter()


@contextmanager
def actor_of(
    make=FollowedActor,
    *,
    mode="training",
    served=None,
    kept=None,
    rule=None,
    config=None,
    **session,
):
    """An actor in a session of its own."""
    with closing(ParameterClient(served or Served())) as client:
        parts = ActorSession(
            parameters=client,
            experience=kept or KeptSteps(),
            metrics=session.pop("metrics", NullMetrics()),
            pull_rule=rule or PullRule(),
            **session,
        )
        with closing(make(config or NumberedConfig(), parts, 0, mode)) as actor:
            yield actor
