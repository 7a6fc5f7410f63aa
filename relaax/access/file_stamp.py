"""Notices that files have been replaced or written."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

Content = TypeVar("Content")

#: How long what was read is taken for what is there.
FRESH_S = 1.0


class FromFiles(Generic[Content]):
    """What ``read`` makes of some files; read again once they have changed.

    ``read`` runs at once, and raises what it raises. Later, what cannot be read leaves the content
    as it was, and ``complain`` is called with the error, once for each change.
    """

    def __init__(
        self,
        files: Sequence[Path],
        read: Callable[[], Content],
        complain: Callable[[Exception], None],
    ) -> None:
        self._files = files
        self._read = read
        self._complain = complain
        self._stamp = self._stamp_now()
        self._content = read()
        self._look_at = time.monotonic() + FRESH_S

    def content(self) -> Content:
        """Return what the files hold, or held a second ago."""
        now = time.monotonic()
        if now < self._look_at:
            return self._content
        self._look_at = now + FRESH_S
        stamp = self._stamp_now()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._content = self._read()
            except Exception as error:  # whatever is wrong with them, the old content still holds
                self._complain(error)
        return self._content

    def _stamp_now(self) -> list[tuple[int, int, int] | None]:
        return [_stamp_of(file) for file in self._files]


def _stamp_of(file: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
