"""The messages of several connections as one, by slot."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relaax.server.rlx_server.worker.connection import Connection
from relaax.steps import Flags, IntArray, Steps

Array = npt.NDArray[Any]
States = Sequence[Any] | Array


class Request(NamedTuple):
    """Steps that wait for their answer."""

    connection: Connection
    steps: Steps

    @property
    def slots(self) -> IntArray:
        """int64 [M]: where its environments are in this worker."""
        slots: IntArray = self.connection.slots[self.steps.environments]
        return slots


class Batch(NamedTuple):
    """What several requests report together, in their order."""

    #: int64 [M]
    slots: IntArray
    #: uint8 [M]
    flags: Flags
    #: float64 [M]
    rewards: npt.NDArray[np.float64]
    #: States [A, ...] of each request that has some.
    states: list[States]
    #: The last states [F, ...] of truncated episodes, of each request that has some.
    finals: list[States]


def joined(requests: list[Request]) -> Batch:
    """Return several requests as one; the arrays are copies, but for a single request."""
    if len(requests) == 1:
        steps = requests[0].steps
        slots, flags, rewards = requests[0].slots, steps.flags, steps.rewards
    else:
        slots = np.concatenate([r.slots for r in requests])
        flags = np.concatenate([r.steps.flags for r in requests])
        rewards = np.concatenate([r.steps.rewards for r in requests])
    return Batch(
        slots,
        flags,
        rewards,
        states=[r.steps.observations for r in requests if len(r.steps.observations)],
        finals=[_finals_of_truncated(r.steps) for r in requests if len(r.steps.finals)],
    )


def _finals_of_truncated(steps: Steps) -> States:
    """Return the final states without those of terminated episodes, after which nothing follows."""
    is_truncated = steps.is_truncated[steps.has_final]
    if isinstance(steps.finals, np.ndarray):
        finals: Array = steps.finals[is_truncated]
        return finals
    return [final for final, wanted in zip(steps.finals, is_truncated, strict=True) if wanted]
