"""Encodes and decodes the messages of the replay service."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.net.payloads import PayloadCodec, WithPayload
from relaax.replay import replay_pb2
from relaax.replay.array_bytes import Place, array_at, dtype_of, packed, read, written
from relaax.replay.replay import ReplayState
from relaax.replay.schema import Column, Schema
from relaax.replay.selectors import FloatArray, IntArray
from relaax.replay.storage import Flags
from relaax.replay.table import Sample, TableState

Array = npt.NDArray[Any]

SERVICE = replay_pb2.DESCRIPTOR.services_by_name["Replay"]
SERVICE_NAME = SERVICE.full_name
STEPS = PayloadCodec(replay_pb2.Steps, "data")
ITEMS = PayloadCodec(replay_pb2.Items, "data")
PRIORITIES = PayloadCodec(replay_pb2.Priorities, "data")

_KEYS, _PROBABILITIES = np.dtype("<i8"), np.dtype("<f8")

#: Columns of every sample beside its own.
_OWN = {"key": _KEYS, "probability": _PROBABILITIES}


@dataclass(frozen=True)
class Run:
    """Consecutive steps of one environment."""

    environment: int
    #: The number of the first one.
    first: int
    #: By name, [N, ...].
    rows: Mapping[str, Array]
    flags: Flags


def column_messages(schema: Schema) -> list[replay_pb2.Column]:
    """Return the columns of a schema as messages."""
    return [
        replay_pb2.Column(name=name, dtype=column.dtype.str, shape=column.shape)
        for name, column in schema.columns.items()
    ]


def schema_of(columns: Sequence[replay_pb2.Column]) -> Schema:
    """Return the schema of messages; ValueError for types that are not numeric."""
    return Schema({c.name: Column(dtype_of(c.dtype), tuple(c.shape)) for c in columns})


def steps_message(
    writer: str, runs: Sequence[replay_pb2.Run], flags: Flags, columns: Sequence[Array]
) -> WithPayload[replay_pb2.Steps]:
    """Return the message of the steps of all ``runs``, one run behind another."""
    fields = replay_pb2.Steps(writer=writer, runs=runs, flags=flags.tobytes())
    return WithPayload(fields, written(columns))


def runs_of(message: WithPayload[replay_pb2.Steps], schema: Schema) -> Iterator[Run]:
    """Yield the runs of a message; ValueError where its sizes do not fit."""
    flags = np.frombuffer(message.fields.flags, np.uint8)
    count = len(flags)
    if sum(run.count for run in message.fields.runs) != count:
        raise ValueError(f"the runs do not have {count} steps, as many as there are flags")
    forms = [(column.dtype, (count, *column.shape)) for column in schema.columns.values()]
    (data,) = message.payload or (memoryview(b""),)
    columns = dict(zip(schema.columns, read(memoryview(data), forms), strict=True))
    begin = 0
    for run in message.fields.runs:
        part = slice(begin, begin + run.count)
        rows = {name: column[part] for name, column in columns.items()}
        yield Run(run.environment, run.first, rows, flags[part])
        begin = part.stop


def require_finite(rows: Mapping[str, Array], names: Iterable[str] | None = None) -> None:
    """Raise ValueError, which names the column, unless the columns ``names``, or all, are finite.

    A learner would make NaN of all that it has learnt. Names that are not there are passed over.
    """
    for name in rows if names is None else names:
        column = rows.get(name)
        if column is not None and column.dtype.kind == "f" and not np.isfinite(column).all():
            raise ValueError(f"column {name!r} is not finite")


def items_message(sample: Sample) -> WithPayload[replay_pb2.Items]:
    """Return a sample as a message."""
    parts, places = packed(arrays_of(sample))
    return WithPayload(fields_of(sample, places), parts)


def arrays_of(sample: Sample) -> list[Array]:
    """Return the arrays of a sample in the order in which a message names them."""
    return [sample.keys, sample.probabilities, *sample.columns.values()]


def fields_of(sample: Sample, places: Sequence[Place]) -> replay_pb2.Items:
    """Return a sample as a message, but for the contents of its arrays, which lie elsewhere."""
    names = ["key", "probability", *sample.columns]
    return replay_pb2.Items(
        arrays=[
            replay_pb2.Array(
                name=name,
                dtype=array.dtype.newbyteorder("<").str,
                shape=array.shape,
                offset=place.offset,
                strides=place.strides,
            )
            for name, array, place in zip(names, arrays_of(sample), places, strict=True)
        ],
        items=sample.items,
        least_probability=sample.least_probability,
    )


def sample_of(message: WithPayload[replay_pb2.Items]) -> Sample:
    """Return the sample of a message; its arrays lie in the message, and are read-only."""
    (data,) = message.payload or (memoryview(b""),)
    return sample_in(message.fields, memoryview(data))


def sample_in(fields: replay_pb2.Items, data: Any) -> Sample:
    """Return the sample of a message; its arrays lie in the buffer ``data``.

    ValueError where they do not fit into it.
    """
    arrays = {array.name: _array_in(array, data) for array in fields.arrays}
    if {name: array.dtype for name, array in arrays.items() if name in _OWN} != _OWN:
        raise ValueError("a sample has keys and probabilities, of 8 bytes each")
    if arrays["key"].ndim != 1 or arrays["probability"].shape != arrays["key"].shape:
        raise ValueError("a sample has a probability for each of its keys, in one dimension")
    return Sample(
        keys=arrays.pop("key"),
        probabilities=arrays.pop("probability"),
        columns=arrays,
        items=fields.items,
        least_probability=fields.least_probability,
    )


def _array_in(array: replay_pb2.Array, data: Any) -> Array:
    form = dtype_of(array.dtype), tuple(array.shape)
    return array_at(data, form, Place(array.offset, tuple(array.strides)))


def state_message(state: ReplayState, incarnation: int) -> replay_pb2.State:
    """Return how a table of a store is as a message."""
    return replay_pb2.State(
        incarnation=incarnation,
        steps=state.steps,
        actions=state.actions,
        reason=state.reason,
        **asdict(state.table),
    )


def state_of(message: replay_pb2.State) -> ReplayState:
    """Return the state of a table as a message."""
    table = TableState(message.items, message.weight, message.allowance)
    return ReplayState(table, message.steps, message.actions, message.reason)


def priorities_message(
    table: str, keys: IntArray, priorities: FloatArray, incarnation: int = 0
) -> WithPayload[replay_pb2.Priorities]:
    """Return other priorities of items as a message."""
    fields = replay_pb2.Priorities(table=table, count=len(keys), incarnation=incarnation)
    return WithPayload(
        fields, written([keys.astype(_KEYS), np.asarray(priorities, _PROBABILITIES)])
    )


def priorities_of(message: WithPayload[replay_pb2.Priorities]) -> tuple[IntArray, FloatArray]:
    """Return the keys [N] and priorities [N] of a message."""
    count = message.fields.count
    (data,) = message.payload or (memoryview(b""),)
    keys, priorities = read(memoryview(data), [(_KEYS, (count,)), (_PROBABILITIES, (count,))])
    return keys, priorities
