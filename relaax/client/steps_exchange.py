"""Steps and their answers over a line, in version 2."""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.client.line import Line
from relaax.errors import ProtocolError
from relaax.protocol import binary
from relaax.protocol.binary import Answers, Metric
from relaax.steps import ENDED, Steps

Array = npt.NDArray[Any]


class StepsExchange:
    """Sends steps and returns answers that are about them."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._writer = binary.StepsWriter()
        self._reader = binary.AnswersReader()
        #: The numbers of environments of the last plain answer that was compared, and of its steps.
        self._answered: Array | None = None
        self._asked: Array | None = None

    def ask(self, steps: Steps) -> Answers:
        """Report ``steps``, which must have been checked, and return the answers.

        Failure, and no connection any more, for answers about anything else.
        """
        payload = self._writer.write(steps)
        answers = self._line.ask(payload, lambda reply: self._read(reply, steps))
        if not steps.is_plain and (steps.flags & ENDED).any():
            self._line.episode_ended()
        return answers

    def tell(self, name: str, y: float, x: float | None) -> None:
        """Report a number."""
        self._line.tell(binary.encode_metric(Metric(name, float(y), x)))

    def _read(self, payload: bytes, steps: Steps) -> Answers:
        answers = self._reader.read(payload)
        is_known = answers.environments is self._answered and steps.environments is self._asked
        if is_known and steps.is_plain:
            return answers
        _require_about(answers, steps)
        if steps.is_plain:
            self._answered, self._asked = answers.environments, steps.environments
        return answers


def _require_about(answers: Answers, steps: Steps) -> None:
    """Raise ProtocolError for answers about other environments, or of another kind."""
    if not np.array_equal(answers.environments, steps.environments):
        raise ProtocolError(
            f"it was asked about the environments {_short(steps.environments)}, "
            f"it answered about {_short(answers.environments)}"
        )
    expected = binary.answer_flags(steps.flags)
    if not np.array_equal(answers.flags, expected):
        raise ProtocolError(
            f"the answers to {_short(steps.environments)} are of the kinds "
            f"{_short(answers.flags)}, not {_short(expected)}"
        )


def _short(numbers: Array) -> str:
    return np.array2string(numbers, threshold=16, separator=", ")
