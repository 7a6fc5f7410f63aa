"""Metadata in a file of SQLite: the store that needs no server."""

import json
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from mongoquery import Query

from relaax.errors import CheckpointError
from relaax.parameters.database.metadata import MetadataStore, VersionMetadata
from relaax.parameters.database.query import Stage

#: Another process changes the file for less than that.
_WAIT_S = 10.0

_TABLE = "CREATE TABLE IF NOT EXISTS metadata (version INTEGER PRIMARY KEY, json TEXT NOT NULL)"


class SqliteMetadata(MetadataStore):
    """A table with a JSON text for each version; mongoquery decides which ones match a query.

    Each call opens the file for itself, so that threads and processes share it. A local file
    system is needed: network file systems have no reliable locks. ``random`` draws ``$sample``.
    """

    kind = "SQLite"

    def __init__(
        self, path: Path, is_only_read: bool = False, random: np.random.Generator | None = None
    ) -> None:
        self._path = path.absolute()
        self._mode = "ro" if is_only_read else "rwc"
        self._random = random or np.random.default_rng()
        if not is_only_read:
            with self._opened() as database:
                database.execute(_TABLE)

    def read(self, version: int) -> VersionMetadata | None:
        """See MetadataStore."""
        with self._opened() as database:
            rows = database.execute("SELECT json FROM metadata WHERE version = ?", [version])
            row = rows.fetchone()
            return None if row is None else VersionMetadata.model_validate_json(row[0])

    def write(self, metadata: VersionMetadata) -> None:
        """See MetadataStore."""
        row = (metadata.version, metadata.model_dump_json())
        with self._opened() as database:
            database.execute("REPLACE INTO metadata VALUES (?, ?)", row)

    def delete(self, versions: Collection[int]) -> None:
        """See MetadataStore."""
        with self._opened() as database:
            rows = [(version,) for version in versions]
            database.executemany("DELETE FROM metadata WHERE version = ?", rows)

    def find(self, stages: Collection[Stage]) -> list[VersionMetadata]:
        """See MetadataStore. In the order of versions where a query does not sort them."""
        found = self._all()
        for stage in stages:
            ((operator, value),) = stage.items()
            found = self._after(found, operator, value)
        return [VersionMetadata.model_validate(each) for each in found]

    def fields(self) -> set[str]:
        """See MetadataStore."""
        return {name for each in self._all() for name in each["md"]}

    def _after(self, found: list[Stage], operator: str, value: Any) -> list[Stage]:
        match operator:
            case "$match":
                return list(filter(Query(value).match, found))
            case "$sort":
                for field, direction in reversed(value.items()):
                    rank = partial(_rank, field)
                    found = sorted(found, key=rank, reverse=direction < 0)
                return found
            case "$limit":
                return found[:value]
            case "$skip":
                return found[value:]
        order = self._random.permutation(len(found))
        return [found[index] for index in order[: value["size"]]]

    def _all(self) -> list[Stage]:
        with self._opened() as database:
            rows = database.execute("SELECT json FROM metadata ORDER BY version").fetchall()
        return [json.loads(text) for (text,) in rows]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        url = f"file:{quote(str(self._path))}?mode={self._mode}"
        try:
            with closing(sqlite3.connect(url, timeout=_WAIT_S, uri=True)) as database, database:
                yield database
        except sqlite3.Error as error:
            raise CheckpointError(f"cannot use the metadata in {self._path}: {error}") from error


def _rank(field: str, document: Stage) -> tuple[bool, float]:
    """Return what a version is sorted by: as in MongoDB, those without the field come first."""
    name = field.removeprefix("md.")
    value = (document["md"] if field.startswith("md.") else document).get(name)
    return value is not None, value or 0.0
