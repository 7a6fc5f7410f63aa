"""The memory that a worker and the compute process share."""

import math
import mmap
import os
import struct
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.steps import Steps

Array = npt.NDArray[Any]

#: Counts of reports, observations and final observations; when the doorbell was rung.
_HEADER = struct.Struct("<qqqd")

_ENTRY = np.dtype([("slot", "<i8"), ("reward", "<f8"), ("flags", "u1")], align=True)

_ALIGNMENT = 64


@dataclass(frozen=True)
class Layout:
    """What an exchange is made for; both ends compute the same offsets from it."""

    environments: int
    observation_dtype: str
    observation_shape: tuple[int, ...]
    action_dtype: str
    action_shape: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the layout as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Layout":
        """Return the layout that ``as_json`` told."""
        shapes = {key: tuple(values[key]) for key in ("observation_shape", "action_shape")}
        return cls(**{**values, **shapes})


class Exchange:
    """Reports of up to N environments one way, actions the other way.

    The memory has no name: it is gone when both ends have closed it, however they ended.
    """

    def __init__(self, layout: Layout, descriptor: int) -> None:
        """Map the memory behind ``descriptor``, which stays the caller's."""
        self._size = 0
        n = layout.environments
        observation = np.dtype(layout.observation_dtype)
        places = [
            (np.dtype(np.int64), (n,)),
            (_ENTRY, (n,)),
            (observation, (n, *layout.observation_shape)),
            (observation, (n, *layout.observation_shape)),
            (np.dtype(layout.action_dtype), (n, *layout.action_shape)),
        ]
        offsets = [self._reserve(dtype.itemsize * math.prod(shape)) for dtype, shape in places]
        if os.fstat(descriptor).st_size < self._size:
            os.ftruncate(descriptor, self._size)
        self._memory = mmap.mmap(descriptor, self._size)
        views = [
            np.ndarray(shape, dtype, self._memory, offset)
            for (dtype, shape), offset in zip(places, offsets, strict=True)
        ]
        #: int64 [N]: what the compute process calls the worker's environments.
        self.slots: Array = views[0]
        self._entries, self._observations, self._finals, self._actions = views[1:]
        self._slots, self._rewards, self._flags = (
            self._entries[name] for name in ("slot", "reward", "flags")
        )
        #: Whose slots and flags stand there already: none of these flags is set.
        self._plain: npt.NDArray[np.int64] | None = None

    @staticmethod
    def new_memory() -> int:
        """Return the descriptor of new memory without a name; the caller closes it."""
        return os.memfd_create("relaax-exchange", os.MFD_CLOEXEC)

    def write(self, steps: Steps) -> None:
        """Put down what environments report; observations are arrays [A, ...] and [F, ...]."""
        count, acting, finals = len(steps.flags), len(steps.observations), len(steps.finals)
        if not steps.is_plain or steps.environments is not self._plain:
            self._slots[:count] = steps.environments
            self._flags[:count] = steps.flags
            self._plain = steps.environments if steps.is_plain else None
        self._rewards[:count] = steps.rewards
        if acting:
            self._observations[:acting] = steps.observations
        if finals:
            self._finals[:finals] = steps.finals
        _HEADER.pack_into(self._memory, 0, count, acting, finals, time.monotonic())

    def read(self) -> tuple[Array, Array, Array, float]:
        """Return views of entries [M], observations [A, ...], finals [F, ...], and when they came.

        The time is ``time.monotonic()``, which all processes of a machine share.
        """
        count, acting, finals, rung_at = _HEADER.unpack_from(self._memory)
        return (
            self._entries[:count],
            self._observations[:acting],
            self._finals[:finals],
            rung_at,
        )

    def write_actions(self, actions: Array) -> None:
        """Put down actions [A, ...]."""
        self._actions[: len(actions)] = actions

    def read_actions(self, count: int) -> Array:
        """Return a copy of the first actions [count, ...]."""
        return self._actions[:count].copy()

    def _reserve(self, size: int) -> int:
        if self._size == 0:
            self._size = _ALIGNMENT  # the header
        offset = self._size
        self._size += -(-size // _ALIGNMENT) * _ALIGNMENT
        return offset


def merged(parts: list[tuple[Array, Array, Array, float]]) -> Steps:
    """Return what several exchanges report as one, in their order; copies, but for a single one."""
    entries = _joined([part[0] for part in parts])
    observations = _joined([part[1] for part in parts if len(part[1])])
    finals = _joined([part[2] for part in parts if len(part[2])])
    return Steps(
        environments=np.ascontiguousarray(entries["slot"]),
        flags=np.ascontiguousarray(entries["flags"]),
        rewards=np.ascontiguousarray(entries["reward"]),
        observations=observations,
        finals=finals,
    )


def _joined(arrays: list[Array]) -> Any:
    if not arrays:
        return ()
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
