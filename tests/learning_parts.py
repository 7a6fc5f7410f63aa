"""Small parts that tests of the learning library and of algorithms build with."""

import threading
from itertools import compress

import numpy as np

from relaax.algorithm_base import Metrics, ParameterLink, Values, Version
from relaax.learning.distributions import Categorical
from relaax.learning.model import Choice
from relaax.learning.networks import (
    LSTM,
    POLICY,
    Convolution,
    Dense,
    Encoder,
    Head,
    LayerNorm,
    Network,
    NetworkParameters,
    Reshape,
    SharedDense,
    TransposedConvolution,
)
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import Columns
from relaax.observations import mapped
from relaax.steps import TRUNCATED, Steps, read_transitions

#: Two numbers in, one of two actions out.
SMALL = Network.of((2,), (Dense(8),), (Head(POLICY, 2),))
SMALL_COLUMNS = Columns(
    observation_shape=(2,), observation_dtype=np.float32, action_shape=(), action_dtype=np.int32
)


def unpack(vector):
    """Parameters of ``SMALL``, without TensorFlow."""
    return NetworkParameters(SMALL.manifest.unpack(vector))


def small_values(number=0, seed=5):
    vector = np.random.default_rng(seed).normal(size=SMALL.manifest.size).astype(np.float32)
    return Values(Version(number), 0, vector)


def small_policy():
    return CurrentPolicy(unpack, small_values())


class Remembering:
    """A policy whose recurrent state counts the steps of each environment."""

    def __init__(self):
        self.sizes = []
        self._policy = NumpyPolicy(SMALL, Categorical(2))

    def batch_size(self, count):
        return count

    def choose(self, parameters, observations, recurrent_state, noise):
        self.sizes.append(len(observations))
        choice = self._policy.choose(parameters, observations, recurrent_state, noise)
        return Choice(choice.actions, choice.extras, recurrent_state + 1)


class Kept:
    """An experience sink that keeps what it is given."""

    def __init__(self):
        self.rollouts = []
        self.is_warm = False
        self.is_closed = False

    def warm_up(self):
        self.is_warm = True

    def put(self, rollouts):
        self.rollouts.append(rollouts)

    def close(self):
        self.is_closed = True


class Stored(Metrics):
    """Metrics that are kept."""

    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y))

    def sum_of(self, name):
        return sum(y for stored, y in self.values if stored == name)


class Recorder(ParameterLink):
    """Passes calls on and remembers the gradients; may be held up, or fail."""

    def __init__(self, service):
        self.service = service
        self.gradients = []
        self.stored = Stored()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.error = None

    def add(self, steps):
        return self.service.add(steps)

    def pull(self, known=None, policy="default"):
        return self.service.pull(known, policy)

    def push(self, update, policy="default"):
        assert self.goes_on.wait(30)
        if self.error is not None:
            raise self.error
        computed_with = update.computed_with
        number = None if computed_with is None else computed_with.number
        self.gradients.append((update.vector, update.steps, number))
        return self.service.push(update, policy)

    def metrics(self):
        return self.stored


class Driven:
    """A batch agent with what drives it: slots, and flags that are read once."""

    def __init__(self, agent):
        self.agent = agent
        self._is_taken = np.zeros(10_000, np.bool_)
        self._is_running = np.zeros(10_000, np.bool_)

    def open(self, count):
        slots = np.flatnonzero(~self._is_taken)[:count]
        self.agent.open(slots)
        self._is_taken[slots] = True
        return slots

    def close_slots(self, slots):
        self.agent.close_slots(slots)
        self._is_running[slots] = False
        self._is_taken[slots] = False

    def act(self, steps):
        slots = steps.environments
        read = read_transitions(slots, steps.flags, steps.rewards, self._is_running[slots])
        truncated = (steps.flags[steps.has_final] & TRUNCATED) != 0
        self._is_running[read.ended] = False
        self._is_running[read.started] = True
        if len(steps.executed):
            checked = self.agent.check_executed(steps.executed)
            read = read._replace(executed_actions=checked)
        if steps.agents:
            read = read._replace(agents=list(compress(steps.agents, steps.acting)))
        check = self.agent.check
        finals = mapped(lambda part: part[truncated], check(steps.finals))
        return self.agent.act(read, check(steps.observations), finals)

    def close(self):
        self.agent.close()


def report(slots, flags, rewards, observations, finals=(), executed=()):
    """What environments of two numbers report."""
    return Steps(
        np.array(slots),
        np.array(flags, np.uint8),
        np.array(rewards, float),
        np.array(observations, np.float32).reshape(-1, 2),
        np.array(finals, np.float32).reshape(-1, 2),
        executed,
    )


class Gradients:
    """What the gradients of rollouts are computed from, in this process, from now on."""

    def __init__(self, monkeypatch):
        from relaax.learning.gradients_tf import RolloutGradients

        compute = RolloutGradients.gradient
        self.models, self.parameters, self.rollouts = [], [], []

        def gradient(model, parameters, rollouts):
            self.models.append(model)
            self.parameters.append(parameters)
            self.rollouts.append(rollouts)
            return compute(model, parameters, rollouts)

        monkeypatch.setattr(RolloutGradients, "gradient", gradient)


def graphs_of(monkeypatch):
    """Return what counts the graphs that TensorFlow makes from now on."""
    from relaax.learning.networks.compiled_tf import CompiledFunction

    made, make = [], CompiledFunction.__init__

    def note(function, *arguments, **named):
        made.append(function)
        make(function, *arguments, **named)

    monkeypatch.setattr(CompiledFunction, "__init__", note)
    return lambda: sum(function.graphs for function in made)


def only(column):
    """The one rollout of a batch as a list."""
    return column[:, 0].tolist()


def wait_until(condition):
    deadline = threading.Event()
    for _ in range(3000):
        if condition():
            return
        deadline.wait(0.01)
    raise AssertionError("it did not happen")


_CONVOLUTIONS = (Convolution(16, 8, 4), Convolution(32, 4, 2))
_DENSE = (Dense(6), Dense(5))
_HEADS = (Head(POLICY, 3), Head("value", 1))
_IMAGE = (28, 36, 2)

_CAMERA_AND_SPEED = Network(
    {
        "speed": Encoder((3,), (Dense(4, "tanh"),)),
        "camera": Encoder((9, 10, 1), (Convolution(3, 3, 2, "same", "elu"), Dense(5, "silu"))),
    },
    (Dense(6), LayerNorm("sigmoid"), LSTM(4)),
    _HEADS,
)
_TWO_VECTORS = Network(
    {"b/c": Encoder((3,), (LayerNorm(), Dense(4, "elu"))), "a": Encoder((2, 3, 1))},
    (Dense(6, "silu"), LayerNorm("tanh")),
    (Head(POLICY, 2, free_units=1, free_start=0.25), Head("value", 1)),
)

_OWN_LAYERS = (
    Head("policy", 3, layers=(Dense(5, "tanh"), LayerNorm())),
    Head("value", 1, layers=(Dense(6), Dense(2))),
)

_PIXELS = Network.of(
    (9, 10, 2),
    (Convolution(3, 3, 2), TransposedConvolution(2, 3, 2, "same"), Dense(5)),
    (
        Head(POLICY, 3),
        Head(
            "value",
            1,
            layers=(Dense(8), Reshape((2, 2, 2)), TransposedConvolution(2, 3, 2), Dense(4)),
        ),
        Head(
            "pixels",
            5 * 8,
            layers=(
                Dense(6, "tanh"),
                Reshape((1, 2, 3)),
                TransposedConvolution(1, 5, 3, activation="linear"),
            ),
            is_linear=False,
        ),
    ),
)
_RESHAPED = Network.of((6,), (Reshape((2, 3)), LayerNorm("tanh"), Dense(4)), _HEADS)

_PARTS = Network.of(
    (6,),
    (SharedDense(4, 3, bias="own"), SharedDense(2, 3, "tanh")),
    (Head(POLICY, 3, layers=(SharedDense(1, 3, "linear"),), is_linear=False), Head("value", 1)),
)

_ENCODERS = {"all": Encoder((3,), (Dense(4),)), "hidden": Encoder((2,), (Dense(3),))}
_CRITIC_SEES_MORE = Network(
    _ENCODERS,
    (Dense(6), LSTM(4)),
    (
        Head("policy", 3, sees=("all",)),
        Head("value", 1, layers=(Dense(5, "tanh"),), sees=("all", "hidden")),
    ),
)
_NOTHING_SHARED = Network(
    _ENCODERS, (), (Head("policy", 3, sees=("all",)), Head("value", 1, sees=("hidden",)))
)

#: A network of each kind, by name, and the type of its observations.
NETWORKS = {
    "dense": (Network.of((4,), _DENSE, _HEADS), np.float32),
    "recurrent": (Network.of((4,), (*_DENSE, LSTM(4)), _HEADS), np.float32),
    "own layers": (Network.of((4,), (), _OWN_LAYERS), np.float32),
    "recurrent with own layers": (Network.of((4,), (LSTM(4),), _OWN_LAYERS), np.float32),
    "image": (Network.of(_IMAGE, (*_CONVOLUTIONS, Dense(5)), _HEADS), np.uint8),
    "recurrent image": (Network.of(_IMAGE, (*_CONVOLUTIONS, Dense(5), LSTM(4)), _HEADS), np.uint8),
    "camera and speed": (_CAMERA_AND_SPEED, {"speed": np.float32, "camera": np.uint8}),
    "two vectors": (_TWO_VECTORS, {"b/c": np.float32, "a": np.float32}),
    "pixels": (_PIXELS, np.uint8),
    "reshaped": (_RESHAPED, np.float32),
    "parts": (_PARTS, np.float32),
    "critic sees more": (_CRITIC_SEES_MORE, {"all": np.float32, "hidden": np.float32}),
    "nothing shared": (_NOTHING_SHARED, {"all": np.float32, "hidden": np.float32}),
}

#: Those that numpy evaluates.
EVALUATED_IN_NUMPY = {"dense", "own layers", "two vectors", "nothing shared", "parts", "reshaped"}
