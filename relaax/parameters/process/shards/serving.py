"""The first shard as a parameter server: what workers, checkpoints and the training ask of it."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

from relaax.algorithm_base import (
    BridgeBase,
    Checkpoint,
    Evaluations,
    FloatVector,
    Metrics,
    NullSaver,
    ParameterServerBase,
    Phase,
    RunningParameterServer,
    Saver,
    Shard,
    Slice,
    Values,
    Version,
)
from relaax.checkpoints import CheckpointSaver
from relaax.checkpoints.checkpoint_sets import part_of, split
from relaax.errors import CheckpointError, CheckpointMismatch, ParameterServerAway
from relaax.parameters.control import GrpcParameterServer
from relaax.parameters.process.shards.leader import Leader
from relaax.parameters.process.shards.members import NotWhole
from relaax.parameters.process.shards.service import ShardServicer, method_handlers
from relaax.parameters.sender_totals import SenderTotals
from relaax.telemetry.operators import SaveRecord

_log = logging.getLogger(__name__)


class FirstShard(ParameterServerBase):
    """Counts steps and says when the training is over, as ``whole`` does, which was divided.

    Checkpoints are sets: the part of this shard, which ``saver`` keeps, is written when all others
    have written theirs. ``saves`` counts those that are saved because a shard is about to end, and
    ``senders`` remember whose steps were counted.
    """

    def __init__(
        self,
        whole: ParameterServerBase,
        leader: Leader,
        part: Slice,
        shard: Shard,
        saver: Saver,
        saves: SaveRecord | None = None,
        senders: SenderTotals | None = None,
    ) -> None:
        self.saver = saver
        self._saves = saves or SaveRecord()
        self._senders = senders or SenderTotals()
        self._whole = whole
        self._leader = leader
        self._part = part
        self._shard = shard
        #: Why the newest set cannot be restored.
        self._failure: CheckpointMismatch | None = None
        self._saving = threading.Lock()
        self._saver = ThreadPoolExecutor(1, thread_name_prefix="save before a shard leaves")
        leader.on_leaving = self._save_for_one_who_leaves

    def restore_latest_checkpoint(self) -> None:
        """Restore this shard's part; the others restore theirs when they come."""
        part = self.saver.restore_latest()
        if part is not None:
            location = self.saver.location()
            self._leader.begin_with(*split(part, location), location)

    def save_checkpoint(self) -> None:
        """Let all shards save; CheckpointError if one of them cannot."""
        self._save()

    def missing(self) -> str | None:
        """Return in words which shard is away, or has not begun; None if none is."""
        missing = self._leader.missing()
        return f"{missing} is away, or has not begun yet" if missing else None

    def global_t(self) -> int:
        """Return the environment steps that all agents have taken."""
        return self._whole.global_t()

    def bridge(self) -> BridgeBase:
        """Return what answers workers, but for what they ask of all shards."""
        return _FirstService(self._whole.bridge(), self._leader)

    def updates(self) -> int | None:
        """Return how often the parameters have been changed."""
        return self._whole.updates()

    def listen(self, address: str) -> RunningParameterServer:
        """Answer workers and the other shards at ``address``; OSError if it is taken."""
        servicer = ShardServicer(self._leader, self._part.begin, self._part.size, self._leader)
        port = GrpcParameterServer(
            address,
            self.bridge(),
            [method_handlers(servicer)],
            more_threads=self._shard.count,
            missing=lambda: self.missing() or "",
            vector_size=self._part.size,
            senders=self._senders,
        )
        return _FirstPort(port, self._leader)

    def training_is_over(self) -> bool:
        """Return whether ``max_global_step`` is reached; raise what keeps shards from beginning.

        It is not over while a shard is away: the last checkpoint needs all of them, and of one that
        was restored nobody knows yet whether it is whole.
        """
        if self._leader.failure is not None:
            self._take_an_older_set(self._leader.failure)
        return self._whole.training_is_over() and not self._leader.missing()

    def max_global_step(self) -> float | None:
        """Return the global step at which the training is over."""
        return self._whole.max_global_step()

    def stop_training(self) -> None:
        """Apply nothing from now on."""
        self._whole.stop_training()

    def close(self) -> None:
        """Wait for what is being saved, and release what the parameter server holds."""
        self._saver.shutdown()
        self._whole.close()

    def _take_an_older_set(self, failure: CheckpointMismatch) -> None:
        """Let all shards begin with the set before the one that is not whole.

        Raise the ``failure``, of the newest set, if there is none, or if another is asked for.
        """
        self._failure = self._failure or failure
        part = None
        if self._leader.is_damaged and isinstance(self.saver, CheckpointSaver):
            part = self.saver.restore_before(self._leader.began_with)
        if part is None:
            raise self._failure
        _log.warning("%s: all begin with that of step %d", failure, part.global_t)
        location = self.saver.location()
        self._leader.begin_with(*split(part, location), location)

    def _write(self, checkpoint: Checkpoint, set_id: str) -> None:
        self.saver.save(part_of(checkpoint, set_id))

    def _save_for_one_who_leaves(self) -> None:
        self._saver.submit(self._save_or_warn)

    def _save(self) -> bool:
        """Return whether there was anything to be saved."""
        if isinstance(self.saver, NullSaver):
            return False
        kept = self.saver.steps() if isinstance(self.saver, CheckpointSaver) else ()
        with self._saving, self._senders.recording():
            return self._leader.save(sorted(kept), self._write)

    def _save_or_warn(self) -> None:
        try:
            if self._save():
                self._saves.note_saved()
            else:
                self._leader.dismiss()
        except CheckpointError as error:
            self._saves.note_failed()
            self._leader.dismiss()
            _log.warning("before a shard left: %s", error)


class _FirstService(BridgeBase):
    """Answers what workers ask of the first shard alone."""

    def __init__(self, service: BridgeBase, leader: Leader) -> None:
        self._service = service
        self._leader = leader

    def increment_global_t(self, steps: int = 1) -> int:
        """Count; ParameterServerAway for steps that come while a shard is away."""
        if not steps:  # it is asked how far the training is
            return self._service.increment_global_t(0)
        try:
            return self._leader.count(steps, self._service.increment_global_t)
        except NotWhole as error:
            raise ParameterServerAway(str(error)) from error

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Refuse: a worker knows one shard alone."""
        refuse_whole()

    def get_values(self, known: Version | None = None) -> Values:
        """Refuse: a worker knows one shard alone."""
        refuse_whole()

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._service.metrics()

    def evaluations(self, after: int = 0) -> Evaluations:
        """Return the scores of evaluations."""
        return self._service.evaluations(after)


class OtherService(BridgeBase):
    """Answers those who take another shard than the first for a parameter server."""

    def __init__(self, shard: Shard, first: str, metrics: Metrics) -> None:
        self._refusal = f"this is shard {shard}: {first} is the first one, which answers this"
        self._metrics = metrics

    def increment_global_t(self, steps: int = 1) -> int:
        """Refuse."""
        raise ValueError(self._refusal)

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Refuse."""
        refuse_whole()

    def get_values(self, known: Version | None = None) -> Values:
        """Refuse."""
        refuse_whole()

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics


class _FirstPort:
    """The port of the first shard, which tells the others when the training is over."""

    def __init__(self, port: GrpcParameterServer, leader: Leader) -> None:
        self._port = port
        self._leader = leader

    def set_phase(self, phase: Phase) -> None:
        """See ``RunningParameterServer``."""
        self._leader.is_over = phase is Phase.CLOSING
        self._port.set_phase(phase)

    def refuse_calls(self) -> None:
        """Answer no worker any more; the other shards are, which save with this one."""
        self._leader.refuse_workers()
        self._port.refuse_calls()

    def all_know(self) -> bool:
        """See ``RunningParameterServer``."""
        return self._port.all_know()

    def stop(self, grace_s: float) -> None:
        """See ``RunningParameterServer``."""
        if self._leader.is_over:
            self._leader.end()
        self._leader.close()
        self._port.stop(grace_s)


def refuse_whole() -> NoReturn:
    """Raise ValueError for what a worker asks of a shard as if it were the whole."""
    raise ValueError(
        "this parameter server has several shards: name all of them, the first one first, in "
        "--parameter-server"
    )
