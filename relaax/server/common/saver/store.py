"""Where the bytes of checkpoints are."""

from abc import ABC, abstractmethod


class BlobStore(ABC):
    """Named blobs in one place.

    A blob is there whole or not at all, whatever is killed and when. Every method raises
    CheckpointError when the place cannot be reached or refuses.
    """

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Make ``data`` durable under ``name``, in place of what was there."""

    @abstractmethod
    def get(self, name: str) -> bytes:
        """Return a blob; DamagedCheckpoint if it is missing or its medium cannot be read."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all blobs, in no order."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a blob; one that is not there is no error."""

    @abstractmethod
    def rename(self, name: str, new_name: str) -> None:
        """Give a blob another name, in place of what was there."""

    @abstractmethod
    def location(self) -> str:
        """Say in words for people where the blobs are."""
