"""The observation that says which actions are allowed."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import InvalidState
from relaax.learning.shapes import space_of_states
from relaax.observations import Shapes
from relaax.spaces import IS_ACTION_MASK, Space

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ActionMask:
    """The observation that says which actions are allowed: its name, and its length.

    They are as many as there are actions, or bits. ``nvec``: of several choices at once, the number
    of actions of each. ``may_forbid_all``: whether an action is left where all numbers are 0, as
    the one without any bit is.
    """

    name: str
    outputs: int
    nvec: tuple[int, ...] = ()
    may_forbid_all: bool = False

    def require(self, state_size: Shapes, what: str = "action") -> None:
        """Raise ValueError unless it can be one of the observations of ``state_size``.

        ``what`` has a number each.
        """
        if not isinstance(state_size, Mapping):
            raise ValueError(
                "action_mask names one of several observations; give names to the others, too: "
                f"state_size: {{NAME: {list(state_size)}}}"
            )
        if not inputs_of(state_size, self):
            raise ValueError("state_size: has the action mask alone, and nothing for the network")
        shape = state_size.get(self.name, (self.outputs,))
        if shape != (self.outputs,):
            raise ValueError(
                f"state_size: {self.name}: an action mask has a number for each {what}, "
                f"[{self.outputs}], is {list(shape)}"
            )

    def require_choice(self, masks: Array) -> None:
        """Raise InvalidState where masks [B, N] leave no action, or no option of a choice."""
        if self.may_forbid_all:
            return
        begins = [*accumulate(self.nvec[:-1], initial=0)]
        has_action = np.logical_or.reduceat(masks, begins, axis=1)
        if has_action.all():
            return
        row, choice = np.argwhere(~has_action)[0].tolist()
        mask = f"the action mask {self.name} of state {row} of {len(masks)} allows no action"
        if masks[row].any():
            raise InvalidState(
                f"{mask} of choice {choice}, which has {self.nvec[choice]}: allow at least one of "
                f"each choice; the choices have {list(self.nvec)} actions, in this order"
            )
        raise InvalidState(
            f"{mask}: a state in which nothing can be done is the end of its episode, report it as "
            "terminated"
        )


def inputs_of(state_size: Shapes, mask: ActionMask | None) -> Shapes:
    """Return the shapes of the network's inputs: ``state_size`` without the mask of actions."""
    if mask is None or not isinstance(state_size, Mapping):
        return state_size
    return {name: size for name, size in state_size.items() if name != mask.name}


def space_with_mask(state_size: Shapes, mask: ActionMask | None) -> Space:
    """Return the space of states of ``state_size``, in which the mask is marked."""
    if mask is None or not isinstance(state_size, Mapping):
        return space_of_states(state_size)
    space = space_of_states({**state_size, mask.name: (mask.outputs,)})
    space["spaces"][mask.name][IS_ACTION_MASK] = True
    return space
