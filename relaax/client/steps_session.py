"""A session in version 2: steps and their answers on one connection."""

from typing import Any

import numpy.typing as npt

from relaax.client.server_connection import ServerConnection
from relaax.protocol.binary import Answers
from relaax.protocol.binary.client_codec import ClientCodec
from relaax.steps import ENDED, Steps

Array = npt.NDArray[Any]


class StepsSession:
    """Sends steps, which must have been checked, and returns the answers.

    Failure, and no connection any more, when the server does not answer, or answers anything else.
    """

    def __init__(self, connection: ServerConnection, environments: int) -> None:
        self._connection = connection
        self._codec = ClientCodec(environments)

    @property
    def is_open(self) -> bool:
        """Whether its connection is open, as far as is known."""
        return self._connection.is_open

    def step_all(self, rewards: Array, observations: Array) -> Array:
        """Report a step of every environment, in which no episode ends; return the actions.

        rewards: float64 [N]; observations: [N, ...].
        """
        payload = self._codec.encode_all(rewards, observations)
        return self._connection.ask(payload, self._codec.decode).actions

    def ask(self, steps: Steps) -> Answers:
        """Report ``steps`` of any kind and return the answers."""
        answers = self._connection.ask(self._codec.encode(steps), self._codec.decode)
        if (steps.flags & ENDED).any():
            self._connection.has_ended_an_episode = True
        return answers

    def tell(self, payload: bytes) -> None:
        """Send a message that is not answered."""
        self._connection.tell(payload)
