"""What several environments report at once, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: Bits of ``Steps.flags``; they travel as they are in RLX version 2.
START = 1
TERMINATED = 2
TRUNCATED = 4
FINAL = 8

ENDED = TERMINATED | TRUNCATED

Flags = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Steps:
    """Reports of M environments, of which A want an action and F bring a final observation.

    An environment wants an action unless its episode has ended and no other has started. A flag
    ``START`` without an end, while an episode goes on, means that this one was given up: it was
    cut off in its last observation, and the action chosen there was never taken.

    Nobody changes these arrays: whoever gets the same ``environments`` object again may take it
    for the same numbers, and does so where messages come by the thousand.
    """

    #: int64 [M], no number twice: which environments.
    environments: IntArray
    #: uint8 [M]: START, TERMINATED or TRUNCATED, FINAL.
    flags: Flags
    #: float64 [M]: what the action before earned; 0 where there was none.
    rewards: npt.NDArray[np.float64]
    #: [A, ...], or a sequence of A states of any kind: where the next action is to be taken.
    observations: Sequence[Any] | npt.NDArray[Any]
    #: [F, ...], or a sequence of F states: in which episodes ended; always for a truncated one.
    finals: Sequence[Any] | npt.NDArray[Any]
    #: True where it is known that no flag is set: everybody goes on and wants an action.
    is_plain: bool = False

    @property
    def acting(self) -> npt.NDArray[np.bool_]:
        """bool [M]: which want an action."""
        return wants_action(self.flags)

    @property
    def has_final(self) -> npt.NDArray[np.bool_]:
        """bool [M]: which bring a final observation."""
        return (self.flags & FINAL).astype(np.bool_)


def wants_action(flags: Flags) -> npt.NDArray[np.bool_]:
    """Return which of ``flags`` [M] ask for an action: bool [M]."""
    return (flags & START).astype(np.bool_) | ~(flags & ENDED).astype(np.bool_)
