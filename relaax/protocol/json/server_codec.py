"""A server's end of the JSON messages of one connection."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.protocol.binary.messages import Metric
from relaax.protocol.connection import Payload
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES
from relaax.protocol.json import messages
from relaax.steps import EXECUTED, START, TERMINATED, Steps

#: The only environment of a connection.
_ONLY = np.zeros(1, np.int64)


class ServerCodec:
    """Decodes a version 1 client's messages about its one environment, and encodes answers."""

    def __init__(self, max_state_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._max_state_bytes = max_state_bytes

    def decode(self, payload: Payload) -> Steps | Metric:
        """Return a client's message; ProtocolError for nonsense."""
        match messages.decode_request(payload, self._max_state_bytes):
            case messages.Act(state):
                return _steps(START, 0.0, [state])
            case messages.RewardAndAct(reward, state, action):
                return _steps(0, reward, [state], action)
            case messages.RewardAndReset(reward, action):
                return _steps(TERMINATED, reward, [], action)
            case messages.ScalarMetric(name, y, x):
                return Metric(name, y, x)

    def encode(
        self, actions: Sequence[Any] | npt.NDArray[Any], scores: npt.NDArray[np.float64]
    ) -> bytes:
        """Return the action, or the score of an episode that is over.

        TypeError or ValueError for an action that JSON cannot hold.
        """
        if len(scores):
            return messages.encode_score(float(scores[0]))
        return messages.encode_action(actions[0])


def _steps(flags: int, reward: float, states: list[Any], executed: Any = None) -> Steps:
    actions = () if executed is None else (executed,)
    flags |= EXECUTED if actions else 0
    return Steps(_ONLY, np.array([flags], np.uint8), np.array([reward]), states, (), actions)
