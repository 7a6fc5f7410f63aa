"""A client's conversation with the agents of a worker, without input and output."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import Evaluation
from relaax.configuration.announced_spaces import AnnouncedSpaces, Doubt
from relaax.errors import InvalidState, ProtocolError
from relaax.processes.run_variables import other_run
from relaax.protocol import binary, json
from relaax.protocol.binary import ErrorCode, Hello, Metric, Welcome
from relaax.protocol.connection import Payload
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.steps import UNNAMED_AGENT, AgentName, IntArray, Steps
from relaax.telemetry.episode_numbers import EPISODE_INFO

if TYPE_CHECKING:
    from relaax.server.rlx_server.worker.responder import Responder


Codec: TypeAlias = json.ServerCodec | binary.ServerCodec
"""One version of the protocol at the server's end: steps and their answers, in turns."""


@dataclass(frozen=True)
class Beginning:
    """The content of a client's first message."""

    codec: Codec
    #: The announcement; in version 1, nothing but one environment, and the name of its agent.
    hello: Hello
    #: The answer; None in version 1, where the first message is like all others.
    welcome: bytes | None
    #: By environment; empty where agents have no names.
    agents: Sequence[AgentName]


def begin(settings: WorkerSettings, first: Payload) -> Beginning:
    """Return the content of a client's first message.

    InvalidState for a hello that does not fit the configuration; ``binary.Error`` or ProtocolError
    for a hello that cannot be understood.
    """
    if not binary.is_hello(first):
        return _begin_version_1(settings, json.decode_agent(first))
    hello = binary.decode_hello(first)
    refusal = other_run("this environment", hello.run, settings.run)
    if refusal is not None:
        raise InvalidState(refusal)
    if hello.environments > settings.max_environments:
        raise InvalidState(
            f"a connection may carry {settings.max_environments} environments (--max-environments "
            f"of the RLX server), this one would carry {hello.environments}"
        )
    welcome = binary.encode_welcome(_welcome(settings, hello))
    codec = binary.ServerCodec(hello.environments)
    return Beginning(codec, hello, welcome, hello.agent_names())


def _begin_version_1(settings: WorkerSettings, agent: AgentName | None) -> Beginning:
    """Begin with a client that announces no more than the name of its agent, if that.

    InvalidState for an agent that the configuration has no policy for.
    """
    hello = Hello(run_id="", environment="", agents=agent and (agent.name,))
    agents = [] if agent is None else [agent]
    announced = _announced(hello, agents)
    _require_fitting(settings, announced)
    settings.doubts.note(announced, settings.config)
    if settings.run:
        settings.doubts.say(
            Doubt.NO_TRAINING,
            "a client of version 1 of the protocol carries no name of its training: one of "
            f"another training than {settings.run} would be taken too",
        )
    return Beginning(json.ServerCodec(settings.most_bytes()), hello, None, agents)


def _welcome(settings: WorkerSettings, hello: Hello) -> Welcome:
    """Return the welcome to ``hello``; InvalidState when its spaces do not fit."""
    config = settings.config
    announced = _announced(hello, hello.agent_names()[: len(hello.agents or ())])
    _require_fitting(settings, announced)
    settings.doubts.note(announced, config)
    return Welcome(
        config.observation_space(),
        config.action_space(),
        hello.evaluate,
        agents=hello.agents is not None,
    )


def _require_fitting(settings: WorkerSettings, announced: AnnouncedSpaces) -> None:
    """Raise InvalidState where spaces or agents do not fit the configuration."""
    configured = "the algorithm section of the server's configuration"
    if reason := announced.misfit(settings.config, configured):
        settings.doubts.say(Doubt.REFUSED, f"an environment was refused: {reason}")
        raise InvalidState(reason)


def _announced(hello: Hello, agents: Sequence[AgentName]) -> AnnouncedSpaces:
    return AnnouncedSpaces(
        hello.environment, hello.observation_space, hello.action_space, agents or [UNNAMED_AGENT]
    )


FloatArray = npt.NDArray[np.float64]
Actions: TypeAlias = Sequence[Any] | npt.NDArray[Any]

_NO_SLOTS: IntArray = np.zeros(0, np.int64)


class Session:
    """Takes a client's messages in their order, and encodes the answers.

    ``number`` is its owner's name for it. ``slots_of`` returns, for a kind of evaluation, the owner
    of its environments' slots. ``on_begin`` is called once the first message is understood, with
    the number of bytes that a message may have.
    """

    def __init__(
        self,
        number: int,
        settings: WorkerSettings,
        slots_of: Callable[[Evaluation | None], "Responder"],
        on_begin: Callable[[int], object] = lambda most_bytes: None,
    ) -> None:
        self.number = number
        self._settings = settings
        self._slots_of = slots_of
        self._on_begin = on_begin
        #: The codec: of version 1 until the client says hello.
        self._codec: Codec = json.ServerCodec()
        #: Whether the first message has come, and was understood.
        self.has_begun = False
        #: Whether the client has said hello: version 1 has no word for an error.
        self.knows_errors = False
        #: How its environments evaluate; None where they are learnt from.
        self.evaluation: Evaluation | None = None
        #: int64 [environments]: the slots of the client's environments.
        self.slots = _NO_SLOTS
        #: By environment; empty where agents have no names.
        self._agents: Sequence[AgentName] = ()

    @property
    def is_training(self) -> bool:
        """Whether its environments are known, and learnt from."""
        return self.has_begun and self.evaluation is None

    def take(self, payload: Payload, *, is_over: bool = False) -> Steps | bytes | None:
        """Return steps that want an answer, or a welcome to send; None for what has no answer.

        That is a metric, now stored, and in version 1 the name of the agent.

        ProtocolError, ``binary.Error``, AgentError or NoRoom for a message that cannot be used, or
        that comes when the training ``is_over``: the session is over then.
        """
        if is_over:
            self.knows_errors |= not self.has_begun and binary.is_hello(payload)
            raise binary.Error(ErrorCode.TRAINING_IS_OVER, "the training is over")
        if not self.has_begun:
            beginning = self._begin(payload)
            if beginning.welcome is not None or beginning.agents:
                return beginning.welcome
        message = self._codec.decode(payload)
        if isinstance(message, Steps):
            return self._named(message) if self._agents else message
        self._store(message)
        return None

    def encoded(self, actions: Actions, scores: FloatArray) -> bytes:
        """Return the answer to the steps taken last: A actions, and the scores of E episodes.

        TypeError or ValueError for actions that cannot be sent.
        """
        return self._codec.encode(actions, scores)

    def close(self) -> None:
        """Forget the environments."""
        if self.has_begun:
            self._slots_of(self.evaluation).close_slots(self.slots)

    def _begin(self, first: Payload) -> Beginning:
        """Take the first message."""
        self.knows_errors = binary.is_hello(first)
        beginning = begin(self._settings, first)
        hello = beginning.hello
        self.slots = self._slots_of(hello.evaluate).open(hello)
        self.evaluation, self._codec, self.has_begun = hello.evaluate, beginning.codec, True
        self._agents = beginning.agents
        self._on_begin(self._settings.most_bytes(hello.environments))
        return beginning

    def _store(self, metric: Metric) -> None:
        """Store a metric, or a number of an episode that goes on."""
        responder = self._slots_of(self.evaluation)
        if not metric.name.startswith(EPISODE_INFO):
            responder.store(metric)
            return
        number = metric.x or 0.0
        if not (number.is_integer() and 0 <= number < len(self.slots)):
            raise ProtocolError(
                f"the x of {metric.name} is the number of an environment on this connection, below "
                f"{len(self.slots)}, and not {number:g}"
            )
        name = metric.name.removeprefix(EPISODE_INFO)
        responder.note(int(self.slots[int(number)]), name, metric.y)

    def _named(self, steps: Steps) -> Steps:
        """Return steps with the names of their agents."""
        agents = [self._agents[number] for number in steps.environments.tolist()]
        return replace(steps, agents=agents)
