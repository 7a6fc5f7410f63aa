"""The log of a trial: its last lines, and those that follow."""

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from relaax.telemetry.logs import OLDER_FILES

#: The start of a line, as ``relaax.telemetry.logs`` formats it.
_BEFORE = re.compile(r"\S+ \S+ (?P<process>\S+) \[\d+\] ")

#: How often further lines are looked for.
_LOOK_S = 0.2


class TrialLog:
    """The lines of a log, or those of one worker. For one thread."""

    def __init__(self, path: Path, worker: str | None = None) -> None:
        self._path = path
        self._worker = worker
        #: Where in the newest file the lines end that were returned.
        self._file: IO[bytes] | None = None

    def last(self, count: int | None) -> list[str]:
        """Return the last lines, with those of older files as far as needed; None for all."""
        lines: list[str] = []
        with suppress(FileNotFoundError):
            self._file = self._path.open("rb")
            lines = self._last_of(self._file, count)
        for number in range(1, OLDER_FILES + 1):
            if count is not None and len(lines) >= count:
                break
            with suppress(FileNotFoundError), Path(f"{self._path}.{number}").open("rb") as file:
                if not self._is_newest(os.fstat(file.fileno())):  # it was renamed meanwhile
                    lines = self._last_of(file, count) + lines
        return lines if count is None else lines[-count:]

    def follow(self, goes_on: Callable[[], bool]) -> Iterator[str]:
        """Yield each line after those that were returned, as long as ``goes_on`` says."""
        while True:
            is_last = not goes_on()  # asked first, so that the last lines are not missed
            yield from self._further()
            if is_last:
                return
            time.sleep(_LOOK_S)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _further(self) -> Iterator[str]:
        """Yield the lines until the end of the newest file, and of the one that it was before."""
        if self._file is not None:
            yield from self._own(self._file)
        with suppress(FileNotFoundError):
            newest = self._path.stat()
            if not self._is_newest(newest):
                self.close()
                self._file = self._path.open("rb")
                yield from self._own(self._file)

    def _is_newest(self, found: os.stat_result) -> bool:
        """Return whether a file is the one that is open as the newest."""
        return self._file is not None and os.path.samestat(found, os.fstat(self._file.fileno()))

    def _last_of(self, file: IO[bytes], count: int | None) -> list[str]:
        return list(deque(self._own(file), maxlen=count))

    def _own(self, file: IO[bytes]) -> Iterator[str]:
        """Yield the whole lines of the worker that are in a file from now on."""
        while (line := file.readline()).endswith(b"\n"):
            text = line.decode(errors="replace").rstrip("\r\n")
            found = _BEFORE.match(text)
            if self._worker is None or (found is not None and found["process"] == self._worker):
                yield text
        file.seek(-len(line), os.SEEK_CUR)  # it is read again when it is whole
