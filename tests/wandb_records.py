"""Reads the files that Weights & Biases writes in its offline mode."""

import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_BLOCK, _HEADER = 32_768, 7


def records(path: Path) -> Iterator[Any]:
    """The records of a run's file: LevelDB's log format, behind a header of its own."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, parts = path.read_bytes(), _HEADER, b""
    while at + _HEADER <= len(data):
        if _BLOCK - at % _BLOCK < _HEADER:
            at += _BLOCK - at % _BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        at += _HEADER + length
        parts += data[at - length : at]
        if kind in (1, 4):  # the whole record, or its last part
            yield Record.FromString(parts)
            parts = b""


def kinds_of(found: Iterable[Any]) -> set[str]:
    """Return the kinds of records."""
    return {record.WhichOneof("record_type") for record in found}


def rows_of(found: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """What the run has logged: a dict of names and values for each step."""
    for record in found:
        if record.WhichOneof("record_type") == "history":
            items = ((item.nested_key[0] if item.nested_key else item.key, item.value_json)
                     for item in record.history.item)  # fmt: skip
            yield {name: json.loads(y) for name, y in items if not name.startswith("_")}
