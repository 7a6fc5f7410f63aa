"""The file that clients' messages are written to."""

import threading
from pathlib import Path
from time import time
from typing import IO

from relaax.errors import ConfigurationError

#: Characters of a message.
LONGEST = 65_536


class LogFile:
    """Lines ``time,uuid,message``, each written at once; without a file there are none."""

    def __init__(self) -> None:
        self._file: IO[str] | None = None
        self._lock = threading.Lock()

    def open(self, path: str | Path, mode: str = "a") -> None:
        """Write to ``path`` from now on: anew with mode ``w``, behind what is there with ``a``."""
        if mode not in ("w", "a"):
            raise ConfigurationError(f"the mode of a log file is 'w' or 'a', not {mode!r}")
        file = Path(path).open(mode, buffering=1, encoding="utf-8")  # noqa: SIM115 - ``close`` does
        with self._lock:
            self._close()
            self._file = file

    def write(self, uuid: str, message: str) -> None:
        """Write a line, if there is a file; ValueError for a message that is too long."""
        if len(message) > LONGEST:
            raise ValueError(f"a message has at most {LONGEST} characters, not {len(message)}")
        line = "\\n".join(f"{uuid},{message}".rstrip("\n").splitlines())
        with self._lock:
            if self._file is not None:
                self._file.write(f"{time():.6f},{line}\n")

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
