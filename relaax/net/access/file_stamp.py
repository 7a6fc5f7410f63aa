"""Notices that files have been replaced or written."""

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

#: How long what was read is taken for what is there.
FRESH_S = 1.0

#: Those who want to know better wait so long for the next look: strangers may cause it.
LOOK_PAUSE_S = 0.02


def is_open_to_others(path: Path) -> bool:
    """Return whether all users of this machine may read or write it; not if it is gone."""
    with contextlib.suppress(OSError):  # the next reading will say so
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
    """What ``read`` makes of some files; read again once they have changed.

    ``read`` runs at once, and raises what it raises. Later, what cannot be read leaves the content
    as it was, and is tried again until it is read; ``complain`` is called with the error, once for
    each change. ``announce`` is called with what is read later, each time.
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
        #: Of what was read, and of what could not be.
        self._stamp = self._stamp_now()
        self._failed_stamp: list[_Stamp | None] | None = None
        self._content = read()
        #: How often it was read.
        self._generation = 1
        self._look_at = time.monotonic() + FRESH_S
        self._looks_again_at = 0.0

    def content(self, *, looks: bool = False) -> Content:
        """Return what the files hold, or held a second ago unless this ``looks``."""
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
        except Exception as error:  # whatever is wrong with them, the old content still holds
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
