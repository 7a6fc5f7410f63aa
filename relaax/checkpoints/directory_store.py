"""Blobs as files of a directory."""

import contextlib
import errno
import fcntl
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

from relaax.checkpoints.store import BlobStore
from relaax.errors import CheckpointError, ConfigurationError, DamagedCheckpoint

_TEMPORARY_PREFIX = ".tmp-"


class DirectoryStore(BlobStore):
    """The files of a directory, which is created if it is missing.

    A blob is written to a temporary file, which is synced and renamed; then the directory is
    synced. The constructor removes the temporary files of killed runs. Files of running writers are
    locked and stay. ConfigurationError if the directory cannot be used.

    A read-only store changes nothing, and its directory must exist.
    """

    def __init__(self, directory: Path, is_only_read: bool = False) -> None:
        self._directory = directory.absolute()
        if is_only_read:
            if not self._directory.is_dir():
                raise ConfigurationError(f"there is no directory of checkpoints {self._directory}")
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()
        except OSError as error:
            raise ConfigurationError(
                f"cannot use the checkpoint directory {self._directory}: {error.strerror}"
            ) from error

    def put(self, name: str, data: bytes) -> None:
        """Write a file through a temporary one."""
        temporary = self._directory / f"{_TEMPORARY_PREFIX}{secrets.token_hex(8)}-{name}"
        with self._errors_explained("write", name):
            try:
                with temporary.open("xb") as file:
                    _lock(file.fileno())
                    sys.audit("relaax.directory.write")
                    file.write(data)
                    file.flush()
                    sys.audit("relaax.directory.sync")
                    os.fsync(file.fileno())
                    sys.audit("relaax.directory.replace")
                    temporary.replace(self._directory / name)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            sys.audit("relaax.directory.replaced")
            self._sync()

    def get(self, name: str) -> bytes:
        """Read a file."""
        with self._errors_explained("read", name):
            try:
                return (self._directory / name).read_bytes()
            except FileNotFoundError:
                raise DamagedCheckpoint(f"{name} is missing") from None
            except OSError as error:
                # A bad sector damages one file. Other causes, for example a missing permission,
                # affect every file, and skipping them all would start the training anew.
                if error.errno == errno.EIO:
                    raise DamagedCheckpoint(f"{name} cannot be read: {error.strerror}") from error
                raise

    def names(self) -> list[str]:
        """List the files, without temporary ones."""
        with self._errors_explained("list", ""):
            return [
                entry.name
                for entry in os.scandir(self._directory)
                if entry.is_file() and not entry.name.startswith(_TEMPORARY_PREFIX)
            ]

    def folders(self) -> list[str]:
        """List the directories below this one."""
        with self._errors_explained("list", ""):
            return [entry.name for entry in os.scandir(self._directory) if entry.is_dir()]

    def delete(self, name: str) -> None:
        """Remove a file."""
        with self._errors_explained("delete", name):
            (self._directory / name).unlink(missing_ok=True)

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file."""
        with self._errors_explained("rename", name):
            (self._directory / name).replace(self._directory / new_name)
            self._sync()

    def location(self) -> str:
        """Return the directory's absolute path."""
        return str(self._directory)

    def _remove_leftovers(self) -> None:
        for path in self._directory.glob(f"{_TEMPORARY_PREFIX}*"):
            with contextlib.suppress(FileNotFoundError):
                if _is_abandoned(path):
                    path.unlink(missing_ok=True)

    def _sync(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _errors_explained(self, action: str, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CheckpointError(
                f"cannot {action} {self._directory / name}: {error.strerror}"
            ) from error


def _lock(descriptor: int) -> None:
    """Mark a temporary file as being written, until it is closed or its writer has ended."""
    # Some network file systems have no locks. There, a second process that starts during a write
    # removes the temporary file; the write fails with an error, and the next one succeeds.
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_abandoned(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True
