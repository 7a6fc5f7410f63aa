"""Blobs that wait on the disk until a store far away has them."""

import contextlib
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from relaax.errors import CheckpointError, CheckpointMismatch, DamagedCheckpoint
from relaax.failpoints import passing
from relaax.server.common.saver.directory_store import DirectoryStore
from relaax.server.common.saver.manifest import parse, step_of_data, step_of_manifest
from relaax.server.common.saver.ownership import Ownership, TakenOver
from relaax.server.common.saver.store import BlobStore

_log = logging.getLogger(__name__)

#: How long it pauses after a failure; twice as long after the next one, up to the most.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0

#: How long ``close`` waits until all is sent.
CLOSE_S = 30.0


@dataclass(eq=False)
class _Change:
    """What the far store has to do: take a blob, or delete it."""

    name: str
    is_put: bool


class Outbox(BlobStore):
    """Writes to ``directory``, and sends all that to ``far``, in the same order, on a thread.

    A put returns when the blob is on the disk, whether or not the far store can be reached. While
    it cannot, a warning says so, and it is tried again, after longer and longer pauses; so it is
    after any other error, whose traceback is logged. What was not
    sent before a process ended is sent by the next one with the same directory, of which each
    belongs to one far store. CheckpointError if that cannot be asked for its names at the start.

    Where a checkpoint is lost on the disk before it is sent, its manifest is not sent either, and
    deletions are left out until a whole checkpoint is sent: the far store keeps what it has.

    ``names`` and ``get`` answer as the far store will when it has all. No other process may change
    what that holds; where one does, ``ownership`` finds out, and ``put`` and ``delete`` raise
    TakenOver from then on. Many threads may call it.
    """

    def __init__(
        self,
        far: BlobStore,
        directory: Path,
        first_pause_s: float = FIRST_PAUSE_S,
        ownership: Ownership | None = None,
    ) -> None:
        self._far = far
        self._disk = DirectoryStore(directory)
        self._first_pause_s = first_pause_s
        self._ownership = ownership
        #: That the far store is another process's.
        self._taken_over: TakenOver | None = None
        self._changed = threading.Condition()
        #: What the far store holds after all that was sent, and what has not been sent.
        self._there = set(far.names())
        self._waiting = deque(_Change(name, is_put=True) for name in self._oldest_first(directory))
        #: Of these, what is being sent: that cannot be taken back.
        self._sending: _Change | None = None
        #: Whether a checkpoint was lost, and no whole one has been sent since; of the thread alone.
        self._has_lost = False
        self._closes = threading.Event()
        if self._waiting:
            _log.warning(
                "%d files were not sent to %s before: they are sent now",
                len(self._waiting),
                far.location(),
            )
        self._thread = threading.Thread(target=self._send_all, name="outbox", daemon=True)
        self._thread.start()

    def put(self, name: str, data: bytes) -> None:
        """Write a blob to the disk, and send it later."""
        with self._changed:
            self._require_own()
            self._disk.put(name, data)
            self._add(_Change(name, is_put=True))

    def get(self, name: str) -> bytes:
        """Read a blob, of the disk while it waits there."""
        with self._changed:
            latest = self._latest(name)
            if latest is not None and not latest.is_put:
                raise DamagedCheckpoint(f"{name} is missing")
            if latest is not None:
                return self._disk.get(name)
        return self._far.get(name)

    def names(self) -> list[str]:
        """List the blobs, those that wait included."""
        with self._changed:
            names = set(self._there)
            for change in self._waiting:
                (names.add if change.is_put else names.discard)(change.name)
            return list(names)

    def delete(self, name: str) -> None:
        """Remove a blob: at once from the disk, later from the far store."""
        with self._changed:
            self._require_own()
            self._disk.delete(name)
            self._add(_Change(name, is_put=False))

    def rename(self, name: str, new_name: str) -> None:
        """Write a blob under another name, and remove the old one."""
        self.put(new_name, self.get(name))
        self.delete(name)

    def location(self) -> str:
        """Return where the far store is."""
        return self._far.location()

    def waiting(self) -> int:
        """Return how many changes have not been sent to the far store."""
        with self._changed:
            return len(self._waiting)

    def close(self, deadline_s: float = CLOSE_S) -> None:
        """Send what waits; CheckpointError, which says where it is, if that takes too long."""
        with self._changed:
            self._closes.set()
            self._changed.notify_all()
        self._thread.join(deadline_s)
        with self._changed:
            left = sum(change.is_put for change in self._waiting)
        if left:
            raise CheckpointError(
                f"{left} files were not sent to {self.location()}: they are in "
                f"{self._disk.location()}, and the next process with the same options sends them"
            )

    def _require_own(self) -> None:
        if self._taken_over is not None:
            raise TakenOver(str(self._taken_over))

    def _oldest_first(self, directory: Path) -> list[str]:
        """Return what an earlier process has left, in the order in which it was written.

        What describes other files comes last: the clock may have been set back between them, and
        a checkpoint must not be there before its data.
        """

        def order(name: str) -> tuple[bool, int]:
            return name.endswith(".json"), (directory / name).stat().st_mtime_ns

        return sorted(self._disk.names(), key=order)

    def _add(self, change: _Change) -> None:
        """Let a change wait, in the place of earlier ones of the same blob."""
        sent = [each for each in self._waiting if each is self._sending]
        is_sent = any(each.name == change.name for each in sent)
        others = [each for each in self._waiting if each.name != change.name and each not in sent]
        self._waiting = deque([*sent, *others])
        if change.is_put or change.name in self._there or is_sent:
            self._waiting.append(change)
        self._changed.notify_all()

    def _latest(self, name: str) -> _Change | None:
        return next((each for each in reversed(self._waiting) if each.name == name), None)

    def _send_all(self) -> None:
        pause_s = 0.0
        known: set[type[Exception]] = set()
        while (change := self._next()) is not None:
            try:
                if self._ownership is not None:
                    self._ownership.require()
                self._send(change)
            except TakenOver as error:
                _log.error("%s", error)
                with self._changed:
                    self._taken_over = error
                return
            except Exception as error:  # without this thread nothing would be sent any more
                if type(error) not in known:
                    self._explain(error)
                known.add(type(error))
                pause_s = min(max(2 * pause_s, self._first_pause_s), LONGEST_PAUSE_S)
                if self._closes.wait(pause_s):
                    time.sleep(self._first_pause_s)
                continue
            if pause_s:
                _log.warning("%s is back: all that waits is sent", self._far.location())
            pause_s = 0.0
            known.clear()

    def _explain(self, error: Exception) -> None:
        """Log that sending has failed, with a traceback where the store is not the reason."""
        if isinstance(error, CheckpointError):
            _log.warning(
                "%s: what is saved is kept in %s, and sent when the store is back",
                error,
                self._disk.location(),
            )
        else:
            _log.error(
                "sending to %s has failed: what is saved is kept in %s, and sending is tried again",
                self.location(),
                self._disk.location(),
                exc_info=error,
            )

    def _next(self) -> _Change | None:
        """Wait for a change; None when all is sent, and this is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closes.is_set())
            self._sending = self._waiting[0] if self._waiting else None
            return self._sending

    def _send(self, change: _Change) -> None:
        problem = None
        try:
            if change.is_put:
                self._send_blob(change.name)
            elif not self._has_lost:
                self._far.delete(change.name)
        except DamagedCheckpoint as damage:  # deleted meanwhile, by a later change or by a person
            problem = str(damage)
        is_left_out = not change.is_put and self._has_lost
        with self._changed:
            is_latest = self._latest(change.name) is change
            self._sending = None
            self._waiting.remove(change)
            if problem is None and not is_left_out:
                (self._there.add if change.is_put else self._there.discard)(change.name)
            if change.is_put:
                self._note_checkpoint(change.name, is_sent=problem is None, is_latest=is_latest)
            if is_latest and problem is not None:
                _log.warning("%s is not sent to %s: %s", change.name, self.location(), problem)
            elif is_left_out:
                _log.warning(
                    "%s is not deleted from %s: no whole checkpoint was sent after one was lost",
                    change.name,
                    self.location(),
                )
            if is_latest and change.is_put:
                self._disk.delete(change.name)

    def _send_blob(self, name: str) -> None:
        """Send a blob of the disk; DamagedCheckpoint if it, or what it describes, is gone."""
        passing("outbox.send")
        blob = self._disk.get(name)
        step = step_of_manifest(name)
        if step is not None:
            self._require_data(blob, step)
        self._far.put(name, blob)
        passing("outbox.sent")

    def _require_data(self, manifest: bytes, step: int) -> None:
        """Raise DamagedCheckpoint unless the far store has the data that a manifest names."""
        with contextlib.suppress(CheckpointMismatch):  # of a newer RELAAX: this one cannot judge it
            data = parse(manifest, step).data
            if data not in self._there:
                raise DamagedCheckpoint(f"its data {data} was lost")

    def _note_checkpoint(self, name: str, *, is_sent: bool, is_latest: bool) -> None:
        """Take note of whether a part of a checkpoint was sent, or lost where it is the latest."""
        is_manifest = step_of_manifest(name) is not None
        if is_sent and is_manifest:
            self._has_lost = False
        elif not is_sent and is_latest and (is_manifest or step_of_data(name) is not None):
            self._has_lost = True
