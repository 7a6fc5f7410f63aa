"""The fields of an entry: the user's own, then reward, probability and value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError, RelaaxError
from relaax.replay.schema import Column, Schema
from relaax.replay.table import Sample

Array = npt.NDArray[Any]

Fields = tuple[Array, ...]
Weights = npt.NDArray[np.float32]
#: Fields and weights; with ``multi_step``, fields twice.
Batch = tuple[Fields, Weights] | tuple[Fields, Fields, Weights]

#: The last fields of an entry.
LAST = ("reward", "prob", "value")

#: Before the names of the entries ``multi_step`` later.
NEXT = "next "

#: Columns beside an entry's fields: its return, and the weight by which it was drawn.
QVEST, WEIGHT = "qvest", "weight"


class MemoryClosed(RelaaxError):
    """The memory, or the client, was closed while something waited for it."""


def as_tuples(sample: Sample) -> Batch:
    """Return a sample as ``get_data`` does."""
    columns = dict(sample.columns)
    weights = columns.pop(WEIGHT)
    fields = tuple(array for name, array in columns.items() if not name.startswith(NEXT))
    later = tuple(array for name, array in columns.items() if name.startswith(NEXT))
    return (fields, later, weights) if later else (fields, weights)


def schema_of(entry: Sequence[npt.ArrayLike]) -> Schema:
    """Return the types and shapes of an entry's fields."""
    arrays = [np.asarray(part) for part in entry]
    if len(arrays) <= len(LAST):
        raise ConfigurationError(
            "an entry has at least one field, and after it the reward, the probability and the "
            f"value; this one has {len(arrays)} fields"
        )
    names = [*(f"entry[{number}]" for number in range(len(arrays) - len(LAST))), *LAST]
    columns = [Column(array.dtype, array.shape) for array in arrays]
    return Schema(dict(zip(names, columns, strict=True)))


def require_rewards(schema: Schema) -> None:
    """Raise ConfigurationError unless Memoire takes reward, probability and value."""
    reward, prob, value = (schema.columns[name] for name in LAST)
    for name in LAST:
        if schema.columns[name].dtype != np.float32:
            raise ConfigurationError(
                f"{name} must be of float32, is of {schema.columns[name].dtype}"
            )
    if prob.shape != ():
        raise ConfigurationError(f"prob must be a number, of shape [], has {list(prob.shape)}")
    if len(reward.shape) > 1 or 0 in reward.shape:
        raise ConfigurationError(
            f"reward must be a number or a vector, has shape {list(reward.shape)}"
        )
    if 0 not in value.shape and value.shape != reward.shape:
        raise ConfigurationError(
            f"value must have the reward's shape {list(reward.shape)} or be empty, has "
            f"{list(value.shape)}"
        )


@dataclass(frozen=True)
class MemoryInfo:
    """The properties of a memory that never change, as its clients know them, too."""

    # A name that was mistyped, or that a memory does not have, is an AttributeError when it is set.
    __slots__ = ("lease_s", "max_step", "num_slot", "schema", "slot_index", "uuid")

    schema: Schema
    num_slot: int
    max_step: int
    uuid: str
    #: For how many seconds at most nothing may be heard of a client.
    lease_s: float
    #: The slot of a client; 0 of the memory itself.
    slot_index: int

    @property
    def view(self) -> tuple[Array, ...]:
        """Zeros of the types and shapes of an entry's fields."""
        return tuple(np.zeros(part.shape, part.dtype) for part in self.schema.columns.values())

    @property
    def reward_buf(self) -> Array:
        """A reward of zeros."""
        return self.view[-3]

    @property
    def prob_buf(self) -> Array:
        """A probability of 0."""
        return self.view[-2]

    @property
    def value_buf(self) -> Array:
        """A value of zeros."""
        return self.view[-1]

    @property
    def qvest_buf(self) -> Array:
        """A return of zeros."""
        return self.view[-1]

    @property
    def entry_size(self) -> int:
        """Bytes of an entry, with its return."""
        return self.schema.bytes + self.qvest_buf.nbytes
