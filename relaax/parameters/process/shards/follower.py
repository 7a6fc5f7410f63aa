"""Another shard than the first: it does what that one says."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from relaax.algorithm_base import Checkpoint, FloatVector, Slice
from relaax.checkpoints.checkpoint_sets import part_of, split
from relaax.errors import DamagedCheckpoint, RelaaxError
from relaax.parameters.process.shards.members import NotWhole, Said
from relaax.parameters.process.shards.orders import Beginning, End, Heard, News, Save, Update
from relaax.parameters.process.shards.staging import Staging
from relaax.telemetry.operators import SaveRecord

_log = logging.getLogger(__name__)

#: How long a read waits for the updates that it should be behind.
READ_WAIT_S = 5.0


class Parts(Protocol):
    """Where a shard keeps its parts of checkpoints."""

    def restore(self, global_t: int) -> Checkpoint:
        """Return the part of a step; DamagedCheckpoint if there is none that is whole."""

    def save(self, checkpoint: Checkpoint, kept: Iterable[int]) -> None:
        """Save a part, and delete those of other steps than its own and ``kept``."""

    def location(self) -> str:
        """Return where they are."""


class Report(Protocol):
    """What the first shard is told."""

    def __call__(self, said: Said, incarnation: int, set_id: str = "", text: str = "") -> None:
        """Tell it; BridgeError if it is away."""


class LostTrack(RelaaxError):
    """What the first shard says does not follow what is here."""


class Follower:
    """Applies updates in the order that it is told; many threads may call ``stage`` and ``read``.

    ``run`` takes what the first shard says. Parts are saved on a thread of their own, which
    ``close`` ends.
    """

    def __init__(
        self, part: Slice, parts: Parts, report: Report, staging: Staging | None = None
    ) -> None:
        self._part = part
        self._parts = parts
        self._report = report
        self._staging = Staging() if staging is None else staging
        self._changed = threading.Condition()
        #: What it has begun with, 0 for nothing, and how many orders it has followed since.
        self.incarnation = 0
        self.position = 0
        #: Whether the training is over.
        self.has_ended = False
        #: Of the parts, how many were saved, and how many could not be.
        self.saved = SaveRecord()
        self._saver = ThreadPoolExecutor(1, thread_name_prefix="save a part")

    def run(self, said: Iterable[News]) -> None:
        """Do what is said, until that ends; LostTrack where it cannot be done."""
        for news in said:
            match news:
                case Heard():
                    continue
                case Beginning():
                    self._begin(news)
                    continue
                case Update():
                    self._apply(news)
                case Save():
                    self._save(news)
                case End():
                    self.has_ended = True
            self.position += 1

    def forget(self) -> None:
        """Begin anew with the next beginning."""
        with self._changed:
            self.incarnation = self.position = 0

    def stage(
        self, worker: int, sequence: int, incarnation: int, gradient: FloatVector, settled: int = 0
    ) -> int:
        """Keep a slice; return the present incarnation: if it is another, nothing was kept."""
        self._part.require_fitting(gradient)
        with self._changed:
            self._require_begun()
            if incarnation == self.incarnation:
                self._staging.put(worker, sequence, gradient, settled)
            return self.incarnation

    def read(
        self, incarnation: int, at_least: int, wait_s: float = READ_WAIT_S
    ) -> tuple[int, FloatVector, int, int]:
        """Return the incarnation, the slice's values, their number, and the global step.

        Wait until ``at_least`` updates of ``incarnation`` were applied; NotWhole if that takes too
        long. Of another incarnation it is not waited for.
        """
        until = time.monotonic() + wait_s
        with self._changed:
            while True:
                self._require_begun()
                vector, number, global_t = self._part.read()
                if incarnation != self.incarnation or number >= at_least:
                    return self.incarnation, vector, number, global_t
                left = until - time.monotonic()
                if left <= 0:
                    raise NotWhole(f"update {at_least} has not come")
                self._changed.wait(left)

    @property
    def saves(self) -> int:
        """How many parts it has saved."""
        return self.saved.saved

    def close(self) -> None:
        """Wait for what is being saved."""
        self._saver.shutdown()

    def _require_begun(self) -> None:
        if not self.incarnation:
            raise NotWhole("this shard has not begun yet")

    def _begin(self, beginning: Beginning) -> None:
        try:
            with self._changed:
                self.incarnation = 0
                self._staging.clear()
                self._take(beginning)
                self.incarnation, self.position = beginning.incarnation, 0
                self._changed.notify_all()
        except (RelaaxError, OSError) as error:
            _log.error("cannot begin: %s", error)
            said = Said.DAMAGED if isinstance(error, DamagedCheckpoint) else Said.FAILED
            self._report(said, beginning.incarnation, text=str(error))
            return
        self._report(Said.BEGUN, beginning.incarnation)

    def _take(self, beginning: Beginning) -> None:
        if not beginning.set_id:
            if beginning.vector is None:
                raise LostTrack("there is neither a checkpoint nor a vector to begin with")
            own = beginning.vector[self._part.begin : self._part.end]
            self._part.begin_with(own, beginning.number, beginning.global_t)
            return
        location = self._parts.location()
        checkpoint, set_id = split(self._parts.restore(beginning.global_t), location)
        if set_id != beginning.set_id:
            raise DamagedCheckpoint(
                f"the checkpoint of step {beginning.global_t} in {location} is of another set "
                f"({set_id}) than that of the first shard ({beginning.set_id})"
            )
        self._part.restore(checkpoint, location)

    def _apply(self, update: Update) -> None:
        gradient = self._staging.take(update.worker, update.sequence)
        if gradient is None:
            raise LostTrack(f"update {update.number} was not staged here")
        with self._changed:
            number = self._part.follow(gradient, update.global_t, update.steps)
            self._changed.notify_all()
        if number != update.number:
            raise LostTrack(f"update {update.number} came after {number - 1}")

    def _save(self, save: Save) -> None:
        """Save what there is now, on another thread."""
        checkpoint = replace(self._part.checkpoint(), global_t=save.global_t)
        self._saver.submit(self._write, part_of(checkpoint, save.set_id), save, self.incarnation)

    def _write(self, part: Checkpoint, save: Save, incarnation: int) -> None:
        try:
            with self.saved.saving():
                self._parts.save(part, save.kept)
                sys.audit("relaax.shards.part")
        except Exception as error:  # the first shard says that nothing was saved
            _log.exception("a part of a checkpoint was not saved")
            self._tell(Said.FAILED, incarnation, save.set_id, str(error))
            return
        self._tell(Said.SAVED, incarnation, save.set_id)

    def _tell(self, said: Said, incarnation: int, set_id: str, text: str = "") -> None:
        try:
            self._report(said, incarnation, set_id, text)
        except RelaaxError as error:
            _log.warning("the first shard was not told: %s", error)


#: Makes a stream of orders for a shard in this state.
Connect = Callable[[int, int], Iterable[News]]
