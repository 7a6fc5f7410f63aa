"""Notices that files have been replaced or written."""

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

#: How long the content is trusted without a look at the file.
FRESH_S = 1.0

#: The pause between looks that strangers may cause.
LOOK_PAUSE_S = 0.02


def is_open_to_others(path: Path) -> bool:
    """Return whether all users of this machine may read or write it; not if it is gone."""
    with contextlib.suppress(OSError):  # the next reading reports it
        return bool(path.stat().st_mode & 0o007)
    return False


Content = TypeVar("Content")


class _Stamp(NamedTuple):
    inode: int
    modified_ns: int
    #: Of its mode and owner, too: whether it may be read depends on them.
    changed_ns: int
    size: int


class FromFiles(Generic[Content]):
    """The result of ``read`` for some files; read again once they have changed.

    ``read`` runs at once, and its exceptions propagate. Later, a failure leaves the old content,
    and the files are tried again until they can be read; ``complain`` is called with the error,
    once for each change. ``announce`` is called with each new content.
    """

    def __init__(
        self,
        files: Sequence[Path],
        read: Callable[[], Content],
        complain: Callable[[Exception], None],
        announce: Callable[[Content], None] = lambda _: None,
    ) -> None:
        self._files = files
        self._read = read
        self._complain = complain
        self._announce = announce
        #: Stamps of the content, and of the last failure.
        self._stamp = self._stamp_now()
        self._failed_stamp: list[_Stamp | None] | None = None
        self._content = read()
        #: How often it was read.
        self._generation = 1
        self._look_at = time.monotonic() + FRESH_S
        self._looks_again_at = 0.0

    def content(self, *, looks: bool = False) -> Content:
        """Return the content of the files, at most a second old; of now if this ``looks``."""
        now = time.monotonic()
        if now < (self._looks_again_at if looks else self._look_at):
            return self._content
        self._look_at, self._looks_again_at = now + FRESH_S, now + LOOK_PAUSE_S
        stamp = self._stamp_now()
        if stamp == self._stamp:
            self._failed_stamp = None
        else:
            self._read_again(stamp)
        return self._content

    def generation(self) -> int:
        """Return a number that is another one once the content may be."""
        self.content()
        return self._generation

    def _read_again(self, stamp: list[_Stamp | None]) -> None:
        try:
            self._content = self._read()
        except Exception as error:  # whatever the failure, the old content still holds
            if stamp != self._failed_stamp:
                self._complain(error)
            self._failed_stamp = stamp
        else:
            self._stamp, self._failed_stamp = stamp, None
            self._generation += 1
            self._announce(self._content)

    def _stamp_now(self) -> list[_Stamp | None]:
        return [_stamp_of(file) for file in self._files]


def _stamp_of(file: Path) -> _Stamp | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return _Stamp(status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
