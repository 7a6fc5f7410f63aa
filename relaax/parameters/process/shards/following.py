"""The process of another shard than the first."""

import logging
import math
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import grpc

from relaax.algorithm_base import Checkpoint, Shard, Slice
from relaax.checkpoints import BlobStore, CheckpointSaver
from relaax.checkpoints.checkpoint_place import saver_of
from relaax.errors import Abandoned, BridgeError, ConfigurationError, DamagedCheckpoint
from relaax.net.channels import open_channel
from relaax.net.reachability import Reachability
from relaax.parameters import shards_pb2
from relaax.parameters.process.shards.follower import Follower, LostTrack
from relaax.parameters.process.shards.members import Said
from relaax.parameters.process.shards.orders import News
from relaax.parameters.process.shards.service import news_of
from relaax.parameters.shard_messages import SERVICE_NAME
from relaax.processes.stop_signal import Stop

_log = logging.getLogger(__name__)

#: Pause before the first shard is called again.
PAUSE_S = 0.2

#: How long one that is stopped waits until all shards have saved.
LEAVE_S = 20.0

#: It stays so long after that: where all are stopped at once, the first one saves once more.
LINGER_S = 2.0

#: How long a report may take.
_REPORT_S = 10.0

#: More than anyone keeps: which parts are deleted, the first shard says.
_KEEP_ALL = 10**9

_WHAT = {said: getattr(shards_pb2.MemberReport, said.name) for said in Said}

#: Shards that are started together find each other within so long.
START_S = 2.0


class SavedParts:
    """A shard's parts of checkpoints, in a store of its own; see ``Parts``."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._saver = CheckpointSaver(store, _KEEP_ALL)

    def restore(self, global_t: int) -> Checkpoint:
        """Return the part of a step; DamagedCheckpoint if there is none that is whole."""
        steps = self._saver.steps()
        if global_t not in steps:
            there = ", ".join(f"{step:,}" for step in sorted(steps)) or "none"
            raise DamagedCheckpoint(
                f"its part of step {global_t:,} is missing in {self.location()}; there are: {there}"
            )
        saver = saver_of(self._store, _KEEP_ALL, restore=str(global_t))
        try:
            found = saver.restore_latest()
        except ConfigurationError as error:
            raise DamagedCheckpoint(str(error)) from error
        if found is None:
            raise DamagedCheckpoint(f"there is no checkpoint in {self.location()}")
        return found

    def save(self, checkpoint: Checkpoint, kept: Iterable[int]) -> None:
        """Save a part, and delete those of other steps than its own and ``kept``."""
        self._saver.save(checkpoint)
        self._saver.delete_all_but({checkpoint.global_t, *kept})

    def location(self) -> str:
        """Return where they are."""
        return self._store.location()


class NoParts:
    """No place for checkpoints; see ``Parts``."""

    def restore(self, global_t: int) -> Checkpoint:
        """Raise ConfigurationError."""
        raise ConfigurationError(
            "this shard has no --checkpoint-dir and no --checkpoint-aws-s3 to restore from"
        )

    def save(self, checkpoint: Checkpoint, kept: Iterable[int]) -> None:
        """Raise ConfigurationError: the first shard must not take it for saved."""
        raise ConfigurationError(
            "this shard has no --checkpoint-dir and no --checkpoint-aws-s3 to save to"
        )

    def location(self) -> str:
        """Say that there is no place."""
        return "no place"


class FirstStub:
    """Calls the first shard for another one."""

    def __init__(self, url: str, shard: Shard, address: str, part: Slice) -> None:
        self.url = url
        self._shard = shard
        self._address = address
        self._size = part.size
        self._channel = open_channel(url)
        self._reachability = Reachability(url, START_S)
        self._follow = self._channel.unary_stream(
            f"/{SERVICE_NAME}/Follow",
            shards_pb2.Member.SerializeToString,
            shards_pb2.Order.FromString,
        )
        self._report = self._channel.unary_unary(
            f"/{SERVICE_NAME}/Report",
            shards_pb2.MemberReport.SerializeToString,
            shards_pb2.Reported.FromString,
        )

    def orders(self, incarnation: int, position: int) -> Iterator[News]:
        """Yield what the first shard says; BridgeError where that breaks off."""
        member = shards_pb2.Member(
            index=self._shard.index,
            count=self._shard.count,
            address=self._address,
            size=self._size,
            incarnation=incarnation,
            position=position,
        )
        try:
            for message in self._follow(member):
                yield news_of(message)
        except grpc.RpcError as error:
            raise self._meaning(error) from error

    def report(self, said: Said, incarnation: int, set_id: str = "", text: str = "") -> None:
        """Tell the first shard; BridgeError if it is away."""
        message = shards_pb2.MemberReport(
            index=self._shard.index,
            what=_WHAT[said],
            incarnation=incarnation,
            set=set_id,
            text=text,
        )
        try:
            self._report(message, timeout=_REPORT_S)
        except (grpc.RpcError, ValueError) as error:
            raise self._meaning(error) from error

    def close(self) -> None:
        """Close the channel; what is waited for ends."""
        self._channel.close()

    def _meaning(self, error: Exception) -> Exception:
        if not isinstance(error, grpc.RpcError):
            return BridgeError(f"the way to {self.url} is closed")
        if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
            return ConfigurationError(f"the first shard at {self.url} refuses: {error.details()}")
        if error.code() is not grpc.StatusCode.CANCELLED:  # by ``close``
            self._reachability.look()
        return BridgeError(f"the first shard at {self.url}: {error.details()}")


class Following:
    """Follows the first shard on a thread, until the training is over or this is closed."""

    def __init__(self, follower: Follower, first: FirstStub) -> None:
        self._follower = follower
        self._first = first
        self._closes = threading.Event()
        #: Whether the first shard is heard.
        self.is_connected = False
        #: Whether it was ever heard, and when that was last, or else when this began.
        self.has_heard = False
        self._heard_at = time.monotonic()
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to do."""
        return not self._thread.is_alive()

    @property
    def silence_s(self) -> float:
        """For how long the first shard is not heard, since this began at most."""
        return 0.0 if self.is_connected else time.monotonic() - self._heard_at

    def leave(self) -> None:
        """Let all shards save before this one ends, if the first one is there."""
        if self.is_over or not self.is_connected:
            return
        saves, until = self._follower.saves, time.monotonic() + LEAVE_S
        with suppress(BridgeError):
            self._first.report(Said.LEAVES, self._follower.incarnation)
            while time.monotonic() < until and self.is_connected and not self.is_over:
                if self._follower.saves != saves:
                    saves, until = self._follower.saves, time.monotonic() + LINGER_S
                time.sleep(PAUSE_S / 4)

    def close(self) -> None:
        """End the thread."""
        self._closes.set()
        self._first.close()
        self._thread.join(5)
        self._follower.close()

    def _run(self) -> None:
        try:
            while not self._closes.is_set():
                self._follow_once()
                if self._follower.has_ended:
                    return
                self._closes.wait(PAUSE_S)
        except Exception as error:
            self.error = error

    def _follow_once(self) -> None:
        follower = self._follower
        try:
            follower.run(self._noted(follower.incarnation, follower.position))
        except LostTrack as error:
            _log.warning("beginning anew: %s", error)
            follower.forget()
        except BridgeError as error:
            if self.is_connected and not self._closes.is_set() and not follower.has_ended:
                _log.warning("waiting: %s", error)
        finally:
            if self.is_connected:
                self._heard_at = time.monotonic()
            self.is_connected = False

    def _noted(self, incarnation: int, position: int) -> Iterator[News]:
        for news in self._first.orders(incarnation, position):
            self.is_connected = self.has_heard = True
            yield news


def follow_until(following: Following, stop: Stop, give_up_s: float = math.inf) -> None:
    """Wait until the training is over, or ``stop`` is set; raise what has ended the thread.

    Abandoned if the first shard is away for ``give_up_s``.
    """
    while not stop.wait(PAUSE_S):
        if following.is_over:
            break
        if following.silence_s > give_up_s:
            raise Abandoned("the first shard", give_up_s, has_answered=following.has_heard)
    else:
        following.leave()
    if following.error is not None:
        raise following.error
