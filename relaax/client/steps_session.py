"""Steps and their answers over a line, in version 2."""

from typing import Any

import numpy.typing as npt

from relaax.client.line import Line
from relaax.protocol import binary
from relaax.protocol.binary import Answers, Metric
from relaax.protocol.binary.client_codec import ClientCodec
from relaax.steps import ENDED, Steps

Array = npt.NDArray[Any]


class StepsExchange:
    """Sends steps, which must have been checked, and returns the answers.

    Failure, and no connection any more, for answers about anything else.
    """

    def __init__(self, line: Line, environments: int) -> None:
        self._line = line
        self._codec = ClientCodec(environments)

    def step_all(self, rewards: Array, observations: Array) -> Array:
        """Report a step of every environment, in which no episode ends; return the actions."""
        payload = self._codec.encode_all(rewards, observations)
        return self._line.ask(payload, self._codec.decode).actions

    def ask(self, steps: Steps) -> Answers:
        """Report ``steps`` of any kind and return the answers."""
        answers = self._line.ask(self._codec.encode(steps), self._codec.decode)
        if (steps.flags & ENDED).any():
            self._line.episode_ended()
        return answers

    def tell(self, name: str, y: float, x: float | None) -> None:
        """Report a number."""
        self._line.tell(binary.encode_metric(Metric(name, float(y), x)))
