"""The worker's end of a bridge to a parameter server in several shards."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import grpc
import numpy as np

from relaax.algorithm_base import BridgeBase, Evaluations, FloatVector, Phase, Values, Version
from relaax.errors import BridgeError, ParameterServerAway
from relaax.net.channels import open_channel
from relaax.net.reachability import SAY_AGAIN_S, Reachability
from relaax.parameters import shards_pb2
from relaax.parameters.shard_messages import SERVICE_NAME, SLICES, STAGED_SLICES
from relaax.parameters.stub import AWAY, Bridge, refusal_of
from relaax.parameters.vectors import WithVector
from relaax.telemetry.metrics import Metrics
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: An RLX server whose shards are not there yet says so after this time.
FIRST_WAIT_S = 2.0

#: Pause before values are asked for again, while shards begin anew.
_PAUSE_S = 0.1

#: The same where a shard does not answer.
PAUSE_AWAY_S = 1.0


@dataclass(frozen=True)
class _Slice:
    """A slice of the values, as it was read."""

    incarnation: int
    number: int
    global_t: int
    vector: FloatVector


class _Unsettled:
    """Gradients that the first shard has committed, or may have, and another may not have applied.

    That one still has to have them: what a worker stages later does not take their place.
    """

    def __init__(self) -> None:
        self._incarnation = 0
        #: In the order of their sequence, with the updates' numbers where these are known.
        self._committed: list[tuple[int, int | None]] = []

    def add(self, sequence: int, incarnation: int, number: int | None) -> None:
        """Take note of one that update ``number`` is made of, None if that is not known."""
        self._is_of(incarnation)
        self._committed.append((sequence, number))

    def have_seen(self, incarnation: int, number: int) -> None:
        """Take note that all shards have applied ``number`` updates."""
        self._is_of(incarnation)
        settled = [
            place
            for place, (_, each) in enumerate(self._committed)
            if each is not None and each <= number
        ]
        if settled:
            del self._committed[: settled[-1] + 1]

    def first(self, sequence: int) -> int:
        """Return the sequence of the first one; ``sequence`` if there is none."""
        return self._committed[0][0] if self._committed else sequence

    def _is_of(self, incarnation: int) -> None:
        """Forget all if the shards have begun anew: so have they."""
        if incarnation != self._incarnation:
            self._incarnation = incarnation
            self._committed.clear()


class _ShardStub:
    """Calls one shard; each method begins a call, which ``result()`` of what it returns ends."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.reachability = Reachability(url)
        self._channel = open_channel(url)
        self._stage = self._method("Stage", STAGED_SLICES.encode, shards_pb2.Staged.FromString)
        self._commit = self._method(
            "Commit", shards_pb2.Commitment.SerializeToString, shards_pb2.Committed.FromString
        )
        self._read = self._method("Read", shards_pb2.SliceQuery.SerializeToString, SLICES.decode)

    def stage(self, fields: shards_pb2.StagedSlice, part: FloatVector, timeout_s: float) -> Any:
        """Begin to stage a slice of a gradient."""
        return self._stage.future(WithVector(fields, part), timeout=timeout_s)

    def commit(self, message: shards_pb2.Commitment, timeout_s: float) -> Any:
        """Begin to commit what was staged."""
        return self._commit.future(message, timeout=timeout_s)

    def read(self, known: _Slice | None, at_least: int, timeout_s: float) -> Any:
        """Begin to read the values, if they are not ``known``."""
        query = shards_pb2.SliceQuery(at_least=at_least)
        if known is not None:
            query.incarnation, query.number = known.incarnation, known.number
        return self._read.future(query, timeout=timeout_s, wait_for_ready=True)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _method(self, name: str, encode: Any, decode: Any) -> Any:
        return self._channel.unary_unary(f"/{SERVICE_NAME}/{name}", encode, decode)


class ShardedBridge(BridgeBase):
    """Calls the shards at ``urls``, the first one first; made after the fork, as ``Bridge`` is.

    Values are read of all shards at once, and a gradient is sent to all at once; the first shard
    then lets all of them apply it. The rest is between the worker and the first shard alone. While
    any shard is away, this waits, warns and drops as ``Bridge`` does.

    The number of a version is the least of its slices', of which some may be newer.
    """

    def __init__(
        self, urls: Sequence[str], call_timeout_s: float = 10.0, retry_for_s: float = 600.0
    ) -> None:
        self._first = Bridge(urls[0], call_timeout_s, retry_for_s)
        self._shards = [_ShardStub(url) for url in urls]
        self._call_timeout_s = call_timeout_s
        self._retry_for_s = retry_for_s
        self._worker = secrets.randbits(63) + 1
        self._sequence = 0
        self._unsettled = _Unsettled()
        self._is_closed = False
        self._complaint = RepeatedWarning(_log, SAY_AGAIN_S)
        #: Guards what follows.
        self._lock = threading.Lock()
        #: The latest slice of each shard, and where all but the first begin.
        self._latest: list[_Slice] = []
        self._cuts: list[int] = []
        #: By the incarnation and number of a version: the numbers of its slices.
        self._numbers: dict[Version, list[int]] = {}

    def wait_at_most(self, seconds: float) -> None:
        """Wait no longer than ``seconds`` for shards that are away."""
        self._retry_for_s = seconds
        self._first.wait_at_most(seconds)

    def increment_global_t(self, steps: int = 1) -> int:
        """Add environment steps to the global step and return it."""
        return self._first.increment_global_t(steps)

    def get_values(self, known: Version | None = None) -> Values:
        """Return the values, without their vector when ``known`` is current."""
        with self._lock:
            self._read()
            return self._values(known)

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Send one gradient; drop it with a warning when a shard is away."""
        with self._lock:
            self._try_to_apply(gradients, 0, computed_with)

    def synchronize(
        self, gradients: FloatVector, steps: int, computed_with: Version | None = None
    ) -> Values:
        """Apply gradients, count their steps and return newer values."""
        with self._lock:
            number = self._try_to_apply(gradients, steps, computed_with)
            self._read(0 if number is None else number)
            return self._values(computed_with)

    def metrics(self) -> Metrics:
        """Return where scalars go: to the first shard."""
        return self._first.metrics()

    def evaluations(self, after: int = 0) -> Evaluations:
        """Return the scores of evaluations behind the first ``after``."""
        return self._first.evaluations(after)

    def phase(self) -> Phase:
        """Return whether the training goes on."""
        return self._first.phase()

    def places(self, environments: Sequence[int]) -> Sequence[int]:
        """Return the places of environments among all of the training."""
        return self._first.places(environments)

    def close(self) -> None:
        """Send the metrics that are left and close the channels; calls that wait end with it."""
        self._is_closed = True
        self._first.close()
        for shard in self._shards:
            shard.close()

    def _values(self, known: Version | None) -> Values:
        """Return the latest values, without a vector if they are those of ``known``."""
        latest = self._latest
        numbers = [each.number for each in latest]
        version = Version(min(numbers), latest[0].incarnation)
        is_known = known == version and self._numbers.get(version) == numbers
        self._numbers = {version: numbers}
        vector = None if is_known else np.concatenate([each.vector for each in latest])
        if vector is not None:
            vector.flags.writeable = False
        return Values(version, latest[0].global_t, vector)

    def _read(self, at_least: int = 0) -> None:
        """Read what is new of all shards; wait for those that are away, and until all agree."""
        deadline = time.monotonic() + self._retry_for_s
        timeout_s = min(self._call_timeout_s, FIRST_WAIT_S)
        while True:
            latest, away = self._read_once(at_least, timeout_s)
            if latest is not None and len({each.incarnation for each in latest}) == 1:
                self._latest = latest
                if self._complaint.forget():
                    _log.warning("all shards of the parameter server answer now")
                self._unsettled.have_seen(
                    latest[0].incarnation, min(each.number for each in latest)
                )
                return
            if self._is_closed:
                raise ParameterServerAway("the connection was closed meanwhile")
            if time.monotonic() > deadline:
                raise ParameterServerAway(
                    f"the parameter server has not answered for {self._retry_for_s:g} s: {away}"
                )
            if away:
                self._complaint.say(f"waiting for {away}")
            timeout_s = self._call_timeout_s
            time.sleep(_PAUSE_S if not away else min(PAUSE_AWAY_S, timeout_s))

    def _read_once(self, at_least: int, timeout_s: float) -> tuple[list[_Slice] | None, str]:
        """Return the slices of all shards; else None and which one is away."""
        known = [*self._latest, *[None] * len(self._shards)]
        replies, away = self._ended(
            partial(shard.read, known[place], at_least, timeout_s)
            for place, shard in enumerate(self._shards)
        )
        if away:
            return None, away
        slices = []
        for before, reply in zip(known, replies, strict=False):
            fields, vector = reply.fields, reply.vector
            if vector is None:
                vector = None if before is None else before.vector
            if vector is None:
                raise BridgeError("a shard sent no values, though they are not known here")
            slices.append(_Slice(fields.incarnation, fields.number, fields.global_t, vector))
        self._require_whole([reply.fields for reply in replies], slices)
        return slices, ""

    def _require_whole(self, fields: Sequence[shards_pb2.Slice], slices: Sequence[_Slice]) -> None:
        """Raise BridgeError unless the slices are a vector, in this order."""
        begins = [each.begin for each in fields]
        ends = [
            each.begin + each_slice.vector.size
            for each, each_slice in zip(fields, slices, strict=True)
        ]
        sizes = {each.size for each in fields}
        if begins != [0, *ends[:-1]] or sizes != {ends[-1]}:
            urls = ", ".join(shard.url for shard in self._shards)
            raise BridgeError(
                f"the shards at {urls} are not all shards of one parameter server, in their order"
            )
        self._cuts = begins[1:]

    def _try_to_apply(
        self, gradient: FloatVector, steps: int, computed_with: Version | None
    ) -> int | None:
        """Return the number of the update; None where it was not applied, as far as is known."""
        if not self._latest:
            self._read()
        incarnation = (
            self._latest[0].incarnation if computed_with is None else computed_with.incarnation
        )
        self._sequence += 1
        bounds = pairwise([0, *self._cuts, gradient.size])
        fields = shards_pb2.StagedSlice(
            worker=self._worker,
            sequence=self._sequence,
            incarnation=incarnation,
            settled=self._unsettled.first(self._sequence),
        )
        staged, away = self._ended(
            partial(shard.stage, fields, gradient[begin:end], self._call_timeout_s)
            for shard, (begin, end) in zip(self._shards, bounds, strict=True)
        )
        if away:
            _log.warning("a gradient, which counts %d steps, is lost: %s", steps, away)
            return None
        if any(reply.incarnation != incarnation for reply in staged):
            self._warn_of_refusal(steps)
            return None
        return self._commit(incarnation, steps)

    def _commit(self, incarnation: int, steps: int) -> int | None:
        commitment = shards_pb2.Commitment(
            worker=self._worker, sequence=self._sequence, incarnation=incarnation, steps=steps
        )
        (reply,), away = self._ended(
            [partial(self._shards[0].commit, commitment, self._call_timeout_s)]
        )
        if away:
            _log.warning("a gradient, which counts %d steps, may be lost: %s", steps, away)
            self._unsettled.add(self._sequence, incarnation, None)
            return None
        if reply.incarnation != incarnation:
            self._warn_of_refusal(steps)
            return None
        self._unsettled.add(self._sequence, incarnation, reply.number)
        return int(reply.number)

    def _warn_of_refusal(self, steps: int) -> None:
        _log.warning(
            "a gradient was refused: it was computed with values from before the shards of the "
            "parameter server began anew; its %d steps are not counted",
            steps,
        )

    def _ended(self, begins: Iterable[Callable[[], Any]]) -> tuple[list[Any], str]:
        """Begin calls of the shards, in their order, and wait until all have ended.

        Return their replies, and which shard is away, if any.
        """
        calls = [_begun(begin) for begin in begins]
        replies: list[Any] = []
        away = ""
        refused: BridgeError | None = None
        for shard, call in zip(self._shards, calls, strict=False):
            try:
                replies.append(call.result())
            except (grpc.RpcError, grpc.FutureCancelledError, ValueError) as error:
                replies.append(None)
                if isinstance(error, grpc.RpcError) and error.code() not in AWAY:
                    refused = refused or refusal_of(error, shard.url)
                else:
                    if not self._is_closed:
                        shard.reachability.look()
                    away = away or f"parameter server {shard.url} ({_cause_of(error, shard)})"
        if refused is not None:
            raise refused
        return replies, away


def _cause_of(error: Exception, shard: _ShardStub) -> str:
    """Return why a call has failed; one that has waited in vain does not know what was in its way.

    Nobody waits for the look at the shard: the next call knows what it has found.
    """
    if not isinstance(error, grpc.RpcError):
        return str(error)
    details = str(error.details())
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return shard.reachability.cause or details
    return details


def _begun(begin: Callable[[], Any]) -> Any:
    """Begin a call; of a channel that another thread has closed, one that has failed."""
    try:
        return begin()
    except ValueError as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed
