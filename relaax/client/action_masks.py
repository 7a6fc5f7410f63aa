"""Masks of actions beside a state: which of the server's observations they are.

Gymnasium's environments say which actions are allowed in ``info["action_mask"]``, beside what they
observe; the server's configuration names the mask among the observations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.client.checks import required_numbers
from relaax.errors import ConfigurationError
from relaax.spaces import Space, mask_name, names_beside

Array = npt.NDArray[Any]

#: The name of the mask in an ``info``.
ACTION_MASK = "action_mask"

#: PettingZoo's name of what is observed beside a mask.
OBSERVATION = "observation"


@dataclass(frozen=True)
class MaskedState:
    """A state, or those of several environments, and which actions are allowed there."""

    state: Any
    #: [A], or [N, A]: 0 where an action is forbidden.
    mask: Array

    def named(self, asked: Space | None) -> Any:
        """Return it as observations by the names that the server has ``asked`` for.

        Where the server knows no mask, the state alone. ValueError where the state has another mask
        of that name.
        """
        name = mask_name(asked)
        if asked is None or name is None:
            return self.state
        if not isinstance(self.state, dict):
            (beside, *others) = names_beside(name, asked) or [OBSERVATION]
            return {OBSERVATION if others else beside: self.state, name: self.mask}
        if name in self.state and not np.array_equal(self.state[name], self.mask):
            raise ValueError(
                f"the observation {name} is {self.state[name]}, and info['{ACTION_MASK}'] is "
                f"{self.mask}: give the mask once"
            )
        return {**self.state, name: self.mask}


def named_state(state: Any, asked: Space | None) -> Any:
    """Return ``state``, and the mask beside it, as the server has ``asked`` for them."""
    return state.named(asked) if isinstance(state, MaskedState) else state


class MaskReader:
    """Reads masks of infos, once the first one has had one."""

    def __init__(self) -> None:
        self._is_there = False

    def begin(self, info: Mapping[str, Any]) -> None:
        """Take note of whether the infos of the episodes that begin now have masks."""
        self._is_there = info.get(ACTION_MASK) is not None

    def beside(self, state: Any, info: Mapping[str, Any]) -> Any:
        """Return ``state`` with the mask in ``info``, if there is one."""
        if not self._is_there:
            return state
        mask = info.get(ACTION_MASK)
        if mask is None:
            raise _missing("")
        return MaskedState(state, as_mask(mask))

    def beside_rows(
        self, states: Any, infos: Mapping[str, Any], wanted: npt.NDArray[np.int64]
    ) -> Any:
        """Return ``states`` [W, ...] with the masks of environments ``wanted`` [W].

        infos: those of a vector environment, which say in ``_action_mask`` who has one.
        """
        if not self._is_there or not len(wanted):
            return states
        masks: Any = infos.get(ACTION_MASK)
        has_one = infos.get(f"_{ACTION_MASK}")
        rows = []
        for index in wanted.tolist():
            is_there = masks is not None and (has_one is None or has_one[index])
            if not is_there or masks[index] is None:
                raise _missing(f" of environment {index}")
            rows.append(as_mask(masks[index]))
        return MaskedState(states, np.stack(rows))


def as_mask(value: Any) -> Array:
    """Return a mask as one row: of several choices one behind the other, of bits row by row."""
    parts = value if isinstance(value, tuple | list) else [value]
    what = f"info['{ACTION_MASK}']"
    return np.concatenate([np.array(required_numbers(what, part)).reshape(-1) for part in parts])


def _missing(of_whom: str) -> ConfigurationError:
    return ConfigurationError(
        f"the info{of_whom} has no '{ACTION_MASK}', and had one where the episode began: give it "
        "with each observation, the last one of an episode that is cut off too"
    )
