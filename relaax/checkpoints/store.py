"""The place that holds the bytes of checkpoints."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from relaax.errors import CheckpointError, DamagedCheckpoint

Content = TypeVar("Content")


class BlobStore(ABC):
    """Named blobs in one place.

    A blob exists whole or not at all, even if the process is killed while it writes. Every method
    raises CheckpointError if the place cannot be reached or refuses the access.
    """

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Make ``data`` durable under ``name``; an older blob of that name is replaced."""

    @abstractmethod
    def get(self, name: str) -> bytes:
        """Return a blob; DamagedCheckpoint if it is missing or its disk sector is bad."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all blobs, in any order."""

    @abstractmethod
    def folders(self) -> list[str]:
        """Return the names of the places below this one, in any order."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a blob; a missing one is not an error."""

    @abstractmethod
    def rename(self, name: str, new_name: str) -> None:
        """Rename a blob; an older blob of the new name is replaced."""

    @abstractmethod
    def location(self) -> str:
        """Return where the blobs are, for messages."""


def read_json(store: BlobStore, name: str, read: Callable[[Any], Content]) -> Content | None:
    """Return what ``read`` makes of a blob of JSON; None where there is no such blob.

    CheckpointError for a blob that is no JSON, or of which ``read`` raises ValueError, KeyError or
    TypeError.
    """
    if name not in store.names():
        return None
    try:
        return read(json.loads(store.get(name)))
    except (DamagedCheckpoint, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{name} in {store.location()} cannot be read: {error}") from error
