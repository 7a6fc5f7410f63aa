"""Masks of actions beside a state, under the server's names.

Gymnasium's environments give the mask of allowed actions in ``info["action_mask"]``, beside the
observation; the server's configuration names the mask among the observations.
"""

from collections.abc import Callable, Mapping
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

#: PettingZoo's name of the observation beside a mask.
OBSERVATION = "observation"


@dataclass(frozen=True)
class MaskedState:
    """A state, or the states of several environments, with the mask of allowed actions."""

    state: Any
    #: [A], or [N, A]: 0 where an action is forbidden; None where a mask is missing.
    mask: Array | None
    #: Called when the server knows no mask.
    dropped: Callable[[], object] = lambda: None
    #: The environment without a mask, for messages.
    of_whom: str = ""

    def named(self, asked: Space | None) -> Any:
        """Return it as observations by the names that the server has ``asked`` for.

        Where the server knows no mask, the state alone. ValueError where the state has another mask
        of that name, ConfigurationError where the mask is missing.
        """
        name = mask_name(asked)
        if asked is None or name is None:
            if asked is not None:
                self.dropped()
            return self.state
        if self.mask is None:
            raise _missing(self.of_whom)
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
    """Reads masks of infos. After the first mask, each info must have one if a server asks for it.

    ``doubt`` is called once if the server does not ask for masks.
    """

    def __init__(self, doubt: Callable[[str], object] = lambda message: None) -> None:
        self._doubt = doubt
        self._is_there = self._has_doubted = False

    def _note_dropped(self) -> None:
        """Report masks that the server has not asked for."""
        if not self._has_doubted:
            self._has_doubted = True
            self._doubt(
                f"the environment gives masks of actions, info['{ACTION_MASK}'], and the algorithm "
                "section has no action_mask: forbidden actions are chosen, too"
            )

    def beside(self, state: Any, info: Mapping[str, Any]) -> Any:
        """Return ``state`` with the mask in ``info``, if there is one."""
        mask = info.get(ACTION_MASK)
        if mask is None:
            return MaskedState(state, None, self._note_dropped) if self._is_there else state
        self._is_there = True
        return MaskedState(state, as_mask(mask), self._note_dropped)

    def beside_rows(
        self, states: Any, infos: Mapping[str, Any], wanted: npt.NDArray[np.int64]
    ) -> Any:
        """Return ``states`` [W, ...] with the masks of environments ``wanted`` [W].

        infos: of a vector environment; ``_action_mask`` [N] marks the environments with a mask.
        """
        masks: Any = infos.get(ACTION_MASK)
        self._is_there = self._is_there or masks is not None
        if not self._is_there or not len(wanted):
            return states
        has_one = infos.get(f"_{ACTION_MASK}")
        rows = []
        for index in wanted.tolist():
            is_there = masks is not None and (has_one is None or has_one[index])
            if not is_there or masks[index] is None:
                of_whom = f" of environment {index}"
                return MaskedState(states, None, self._note_dropped, of_whom)
            rows.append(as_mask(masks[index]))
        return MaskedState(states, np.stack(rows), self._note_dropped)


def as_mask(value: Any) -> Array:
    """Return a mask as one row: of several choices one behind the other, of bits row by row."""
    parts = value if isinstance(value, tuple | list) else [value]
    what = f"info['{ACTION_MASK}']"
    return np.concatenate([np.array(required_numbers(what, part)).reshape(-1) for part in parts])


def _missing(of_whom: str) -> ConfigurationError:
    return ConfigurationError(
        f"the info{of_whom} has no '{ACTION_MASK}', and another one had: give it "
        "with each observation, the last one of an episode that is cut off too"
    )
