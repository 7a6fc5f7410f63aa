"""What happened in some environments since their last actions: flags, read once."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relaax.steps import ENDED, START, TERMINATED, TRUNCATED, Flags, IntArray, wants_action

BoolArray = npt.NDArray[np.bool_]

_NONE: IntArray = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Transitions:
    """Steps, ends and starts of environments, by their slots in one worker.

    A slot is a worker's own number for an environment of any of its connections. An environment
    takes a step, begins an episode, or both in this order. Each slot is in ``stepped`` or in
    ``acting`` or in both, and at most once in each.
    """

    #: int64 [S]: took a step.
    stepped: IntArray
    #: float64 [S]: what these steps earned.
    rewards: npt.NDArray[np.float64]
    #: bool [S]: which of these steps ended their episode; nothing is earned after them.
    terminated: BoolArray
    #: int64 [F]: whose episode was cut off after its step, in a state that is reported with it.
    truncated: IntArray
    #: int64 [E]: whose episode is over after its step, terminated or truncated.
    ended: IntArray
    #: int64 [G]: whose episode was cut off in the state that was reported last; the action chosen
    #: there was never taken.
    given_up: IntArray
    #: int64 [A]: want an action, for a state that is reported.
    acting: IntArray
    #: bool [A]: which of these begin an episode with that state.
    starts: BoolArray
    #: Whether all slots took a step and want an action, and nothing else happened.
    only_steps: bool

    @property
    def started(self) -> IntArray:
        """int64: which slots begin an episode."""
        return self.acting[self.starts]


def read_transitions(
    slots: IntArray, flags: Flags, rewards: npt.NDArray[np.float64], is_running: BoolArray
) -> Transitions:
    """Return what ``flags`` [M] of ``relaax.steps`` say about ``slots`` [M], none of them twice.

    rewards: float64 [M]. is_running: bool [M], where an episode was going on before. The flags are
    those that the protocol allows.
    """
    if not flags.any():
        neither = np.zeros(len(slots), np.bool_)
        return Transitions(
            stepped=slots,
            rewards=rewards,
            terminated=neither,
            truncated=_NONE,
            ended=_NONE,
            given_up=_NONE,
            acting=slots,
            starts=neither,
            only_steps=True,
        )
    has_ended, starts = (flags & ENDED) != 0, (flags & START) != 0
    stepped, acting = has_ended | ~starts, wants_action(flags)
    return Transitions(
        stepped=slots[stepped],
        rewards=rewards[stepped],
        terminated=(flags[stepped] & TERMINATED) != 0,
        truncated=slots[(flags & TRUNCATED) != 0],
        ended=slots[has_ended],
        given_up=slots[starts & ~has_ended & is_running],
        acting=slots[acting],
        starts=starts[acting],
        only_steps=False,
    )
