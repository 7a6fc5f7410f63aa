"""The server's actions as actions of a Gymnasium environment, for any action space.

The server sends the actions of a Dict or a Tuple as one array, which is taken apart.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from relaax.client.gymnasium_numbers import (
    BoxActions,
    DiscreteActions,
    UnusableAction,
    VectorBoxActions,
    VectorChoices,
    VectorDiscreteActions,
    counts_of,
    describe,
    width_of,
)
from relaax.client.gymnasium_spaces import (
    GymnasiumSpace,
    Leaf,
    UnsupportedSpace,
    bound_as_json,
    box_as_json,
    described,
    is_nested,
    leaves,
)
from relaax.spaces import Space, box, discrete

Array = npt.NDArray[Any]

#: Spaces of integers, each of a few values.
_CHOICES = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


ActionDecoder: TypeAlias = Callable[[Any], Any]
"""Makes the argument of ``env.step`` of the server's actions, for one environment or several.

``UnusableAction`` if they do not fit.
"""


def action_decoder(space: GymnasiumSpace) -> ActionDecoder:
    """Return the decoder for actions of ``space``; ``UnsupportedSpace`` if it has none."""
    if isinstance(space, spaces.Discrete):
        return DiscreteActions(space)
    if isinstance(space, spaces.Box):
        return BoxActions(space)
    return _OfOne(vector_action_decoder(space))


def vector_action_decoder(space: GymnasiumSpace) -> ActionDecoder:
    """Return the decoder for actions [N, ...] of N environments with one ``space``.

    UnsupportedSpace if no algorithm can choose its actions.
    """
    if is_nested(space):
        return NestedActions(space)
    return _leaf_decoder(Leaf((), space))


def action_space_as_json(space: GymnasiumSpace) -> Space:
    """Return the space of the actions that are asked for; raise ``UnsupportedSpace``."""
    if not is_nested(space):
        return _leaf_as_json(Leaf((), space))
    inside = leaves(space)
    if _are_boxes(space, inside):
        return _box_of(inside)
    return {"type": "MultiDiscrete", "nvec": [n for leaf in inside for n in counts_of(leaf.space)]}


def _box_of(inside: list[Leaf]) -> Space:
    """Return one Box for the numbers of several, one behind the other."""
    low, high = (
        np.concatenate([getattr(leaf.space, name).reshape(-1) for leaf in inside])
        for name in ("low", "high")
    )
    return {
        **box("float32", low.shape), "low": bound_as_json(low), "high": bound_as_json(high)
    }  # fmt: skip


class NestedActions:
    """Arrays [N, width], whose columns are the numbers of the spaces in a Dict or a Tuple."""

    def __init__(self, space: GymnasiumSpace) -> None:
        self._space = space
        inside = leaves(space)
        _are_boxes(space, inside)  # refuses mixed spaces
        self._ends = np.cumsum([width_of(leaf.space) for leaf in inside])
        self._decoders = [_leaf_decoder(leaf) for leaf in inside]
        self._is_single = [isinstance(leaf.space, spaces.Discrete) for leaf in inside]

    def __call__(self, action: Any) -> Any:
        """Return dicts and tuples of arrays [N, ...], as the space has them."""
        width = int(self._ends[-1])
        if action.size != len(action) * width:
            raise UnusableAction(
                f"each environment takes {width} numbers for {self._space}, the server sent "
                f"{describe(action)}"
            )
        columns = np.split(action.reshape(len(action), width), self._ends[:-1], axis=1)
        parts = [
            decode(column[:, 0] if is_single else column)
            for decode, column, is_single in zip(
                self._decoders, columns, self._is_single, strict=True
            )
        ]
        return _nested(self._space, parts)


class _OfOne:
    """Decodes one action like a batch of one."""

    def __init__(self, decode: ActionDecoder) -> None:
        self._decode = decode

    def __call__(self, action: Any) -> Any:
        """Return the only row of the decoded batch."""
        if not isinstance(action, np.ndarray | list | int | float):
            raise UnusableAction(f"the server sent {describe(action)}, not an array")
        return _first(self._decode(np.asarray(action)[np.newaxis]))


def _first(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _first(value) for key, value in values.items()}
    if isinstance(values, tuple):
        return tuple(_first(value) for value in values)
    # A Box takes an array without dimensions, where Discrete takes a number.
    return values[0] if values.dtype.kind in "iu" else values[0, ...]


def _nested(space: GymnasiumSpace, parts: list[Any]) -> Any:
    """Return dicts and tuples like ``space``, with ``parts``, which are used up, in them."""
    if isinstance(space, spaces.Dict):
        return {key: _nested(inner, parts) for key, inner in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_nested(inner, parts) for inner in space.spaces)
    return parts.pop(0)


def _leaf_decoder(leaf: Leaf) -> ActionDecoder:
    match leaf.space:
        case spaces.Discrete():
            return VectorDiscreteActions(leaf.space)
        case spaces.Box():
            return VectorBoxActions(leaf.space)
        case spaces.MultiDiscrete() | spaces.MultiBinary():
            return VectorChoices(leaf.space)
    raise _unsupported(leaf)


def _leaf_as_json(leaf: Leaf) -> Space:
    match leaf.space:
        case spaces.Discrete():
            return discrete(int(leaf.space.n))
        case spaces.MultiDiscrete():
            return {"type": "MultiDiscrete", "nvec": counts_of(leaf.space)}
        case spaces.MultiBinary():
            return {"type": "MultiBinary", "shape": list(leaf.space.shape)}
        case spaces.Box():
            return box_as_json(leaf.space)
    raise _unsupported(leaf)


def _are_boxes(space: GymnasiumSpace, inside: list[Leaf]) -> bool:
    """Return whether all spaces inside of a nested one are boxes; False if all are choices.

    UnsupportedSpace where they are mixed, or of other kinds.
    """
    for leaf in inside:
        if not isinstance(leaf.space, (spaces.Box, *_CHOICES)):
            raise _unsupported(leaf)
    boxes = [leaf for leaf in inside if isinstance(leaf.space, spaces.Box)]
    if not inside or len(boxes) not in (0, len(inside)):
        raise UnsupportedSpace(
            f"actions of {space} cannot be asked for: either all spaces inside are Box, or all are "
            "Discrete, MultiDiscrete or MultiBinary; gymnasium.wrappers.TransformAction can give "
            "the environment such a space"
        )
    return bool(boxes)


def _unsupported(leaf: Leaf) -> UnsupportedSpace:
    return UnsupportedSpace(
        f"actions of {described(leaf)} cannot be asked for: Discrete, MultiDiscrete, MultiBinary "
        "or Box is needed; gymnasium.wrappers.TransformAction can give the environment such a space"
    )
