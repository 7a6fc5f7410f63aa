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
        self._file: IO[str] | None = None

    def last(self, count: int | None) -> list[str]:
        """Return the last lines, with those of older files; None for all."""
        found: deque[str] = deque(maxlen=count)
        for number in range(OLDER_FILES, 0, -1):
            older = Path(f"{self._path}.{number}")
            with suppress(FileNotFoundError), _opened(older) as file:
                found.extend(self._own(file))
        with suppress(FileNotFoundError):
            self._file = _opened(self._path)
            found.extend(self._own(self._file))
        return list(found)

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
            if self._file is None or not os.path.samestat(newest, os.fstat(self._file.fileno())):
                self.close()
                self._file = _opened(self._path)
                yield from self._own(self._file)

    def _own(self, file: IO[str]) -> Iterator[str]:
        """Yield the whole lines of the worker that are in a file from now on."""
        while True:
            at = file.tell()
            line = file.readline()
            if not line.endswith("\n"):  # the end of the file, or of what is written yet
                file.seek(at)
                return
            found = _BEFORE.match(line)
            if self._worker is None or (found is not None and found["process"] == self._worker):
                yield line.removesuffix("\n")


def _opened(path: Path) -> IO[str]:
    return path.open(encoding="utf-8", errors="replace")
