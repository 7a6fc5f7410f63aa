"""One process at a time saves to a directory."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from relaax.errors import ConfigurationError

#: The file that is locked, in the directory itself.
NAME = "lock"

#: A stopped process saves before it ends: its successor waits so long.
WAIT_S = 5.0

_LOOK_S = 0.1


@contextmanager
def owned(
    directory: Path | None,
    owner: str,
    wait_s: float = WAIT_S,
    advice: str = "stop that, or choose another directory",
) -> Iterator[None]:
    """Keep other processes from ``directory`` within a block; nothing without one.

    ConfigurationError, with the name of its owner and ``advice``, if another process has it; the
    system releases the locks of a killed process. On a file system without locks nothing is
    guarded.
    """
    if directory is None:
        yield
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / NAME).open("a+")
    except OSError as error:
        raise ConfigurationError(f"cannot use the directory {directory}: {error}") from error
    with file:
        if not lock_within(file, wait_s, _LOOK_S):
            file.seek(0)
            raise ConfigurationError(
                f"{directory} is in use by {file.read() or 'another process'}: {advice}"
            )
        _write(file, f"{owner} (pid {os.getpid()} on {socket.gethostname()})")
        yield
        _write(file, "")


def _write(file: IO[str], text: str) -> None:
    """Write the owner's name into the lock file; the lock also holds on a full disk, without it."""
    with suppress(OSError):
        file.truncate(0)
        os.write(file.fileno(), text.encode())


def lock_within(file: IO[str] | int, wait_s: float, look_s: float) -> bool:
    """Keep other processes from a file; return whether none has had it for longer than ``wait_s``.

    It is tried each ``look_s``. On a file system without locks nothing is guarded.
    """
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(look_s)
        except OSError:  # it knows no locks
            return True
