"""The first message of a conversation, which shows its version."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.configuration.announced_spaces import AnnouncedSpaces, Doubt
from relaax.errors import InvalidState
from relaax.processes.run_variables import other_run
from relaax.protocol import binary, json
from relaax.protocol.binary import Hello, Metric, Welcome
from relaax.protocol.connection import Payload
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.steps import Steps


class Codec(Protocol):
    """One version of the protocol at the server's end: steps and their answers, in turns."""

    def decode(self, payload: Payload) -> Steps | Metric:
        """Return a client's message; ProtocolError for nonsense."""

    def encode(
        self, actions: Sequence[Any] | npt.NDArray[Any], scores: npt.NDArray[np.float64]
    ) -> bytes:
        """Return the answer to the steps decoded last: A actions, and the scores of E episodes.

        TypeError or ValueError for actions that cannot be sent.
        """


@dataclass(frozen=True)
class Beginning:
    """The content of a client's first message."""

    codec: Codec
    #: The announcement; in version 1, nothing but one environment.
    hello: Hello
    #: The answer; None in version 1, where the first message is like all others.
    welcome: bytes | None


def begin(settings: WorkerSettings, first: Payload) -> Beginning:
    """Return the content of a client's first message.

    InvalidState for a hello that does not fit the configuration; ``binary.Error`` or ProtocolError
    for a hello that cannot be understood.
    """
    if not binary.is_hello(first):
        nothing = Hello(run_id="", environment="")
        settings.doubts.note(_announced(nothing), settings.config)
        if settings.run:
            settings.doubts.say(
                Doubt.NO_TRAINING,
                "a client of version 1 of the protocol carries no name of its training: one of "
                f"another training than {settings.run} would be taken too",
            )
        return Beginning(json.ServerCodec(settings.most_bytes()), nothing, welcome=None)
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
    return Beginning(binary.ServerCodec(hello.environments), hello, welcome)


def _welcome(settings: WorkerSettings, hello: Hello) -> Welcome:
    """Return the welcome to ``hello``; InvalidState when its spaces do not fit."""
    config = settings.config
    announced = _announced(hello)
    if reason := announced.misfit(config, "the algorithm section of the server's configuration"):
        settings.doubts.say(Doubt.REFUSED, f"an environment was refused: {reason}")
        raise InvalidState(reason)
    settings.doubts.note(announced, config)
    return Welcome(config.observation_space(), config.action_space(), hello.evaluate)


def _announced(hello: Hello) -> AnnouncedSpaces:
    return AnnouncedSpaces(hello.environment, hello.observation_space, hello.action_space)
