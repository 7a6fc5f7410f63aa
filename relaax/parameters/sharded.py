"""The worker's end of a bridge to a parameter server in several shards: a fan-out.

Dean et al. 2012 (https://papers.nips.cc/paper/4687), section 4.1: each shard owns a slice of the
parameters, and nothing orders the updates of different workers among shards.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np

from relaax.algorithm_base import (
    DEFAULT,
    Evaluations,
    Gradient,
    ParameterLink,
    Phase,
    Statistics,
    Update,
    Values,
    Version,
)
from relaax.algorithm_base.bridge_base import gradient_of, require_default
from relaax.errors import BridgeError
from relaax.parameters import bridge_pb2
from relaax.parameters.stub import Bridge
from relaax.parameters.vectors import WithVector, known_message, update_message
from relaax.telemetry.metrics import Metrics

_log = logging.getLogger(__name__)

#: So many starts of shards are remembered, and so many versions of their slices: gradients were
#: computed with values of one of them.
_KNOWN_STARTS = 16
_KNOWN_VERSIONS = 64

_Reply: TypeAlias = WithVector[bridge_pb2.Values]
_Key = TypeVar("_Key", int, Version)
_Message: TypeAlias = WithVector[bridge_pb2.Update] | bridge_pb2.Known


class ShardedBridge(ParameterLink):
    """Calls the shards at ``urls``, the first one first; made after the fork, as ``Bridge`` is.

    A gradient is sent in slices, to all shards at once, and their answers are joined to the new
    values. All else is between the worker and the first shard. While a shard is away, a call for
    values waits for it, and its slice of a gradient is lost with a warning; the other shards apply
    theirs.

    A version has the number of the first shard's slice. Its incarnation changes when any shard
    starts again. For several threads, one call after another.
    """

    def __init__(
        self, urls: Sequence[str], call_timeout_s: float = 10.0, retry_for_s: float = 600.0
    ) -> None:
        self._shards = [Bridge(url, call_timeout_s, retry_for_s) for url in urls]
        self._first = self._shards[0]
        #: The newest global step that the first shard has said.
        self._global_t = 0
        self._lock = threading.Lock()
        #: The latest slice of each shard, and where slices begin and end.
        self._latest: list[Values] = []
        self._bounds: list[int] = []
        #: By the incarnation of a version: the incarnations of all shards.
        self._starts: OrderedDict[int, list[int]] = OrderedDict()
        #: By a version: the numbers of all slices.
        self._numbers: OrderedDict[Version, list[int]] = OrderedDict()

    def wait_at_most(self, seconds: float) -> None:
        """Wait no longer than ``seconds`` for a shard that is away."""
        for shard in self._shards:
            shard.wait_at_most(seconds)

    def add(self, steps: int) -> int:
        """Add environment steps to the global step and return it."""
        self._global_t = self._first.add(steps)
        return self._global_t

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the values, without their vector when ``known`` is current."""
        require_default(policy)
        with self._lock:
            return self._read(known)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Apply a gradient, count its steps and return newer values, in one call of each shard.

        A slice is dropped with a warning when its shard is away. Statistics go to the last shard,
        which holds the statistics of all filters.
        """
        require_default(policy)
        if isinstance(update, Statistics):
            with self._lock:
                *others, _ = self._reads()
                replies = self._all([*others, update_message(update)])
                if replies[-1] is None:
                    what = "an update of the filters' statistics may be lost"
                    _log.warning("%s: shard %s has not confirmed it", what, self._shards[-1].url)
                return self._take(replies, None)
        gradient = gradient_of(update)
        with self._lock:
            if not self._latest:
                self._read(None)
            versions = self._versions_of(gradient.computed_with)
            replies = self._all(self._slices(gradient, versions))
            for number, reply in enumerate(replies):
                self._warn_of_loss(number, gradient.steps, reply, versions[number].incarnation)
            return self._take(replies, gradient.computed_with)

    def metrics(self) -> Metrics:
        """Return where scalars go: to the first shard."""
        return self._first.metrics()

    def evaluations(self, after: int = 0) -> Evaluations:
        """Return the scores of evaluations behind the first ``after``."""
        return self._first.evaluations(after)

    def phase(self) -> Phase:
        """Return whether the training goes on; ParameterServerAway while a shard is away."""
        return self._first.phase()

    def places(self, environments: Sequence[int]) -> Sequence[int]:
        """Return the places of environments among all of the training."""
        return self._first.places(environments)

    def close(self) -> None:
        """Send the metrics that are left and close the channels; calls that wait end with it."""
        for shard in self._shards:
            shard.close()

    def _versions_of(self, version: Version | None) -> list[Version]:
        """Return the versions of all slices; of incarnation 0 if their starts are not known.

        Without a version, return the present ones. Where the slices' numbers are not known any
        more, all have the first slice's.
        """
        if version is None:
            return [each.version for each in self._latest]
        count = len(self._shards)
        numbers = self._numbers.get(version, [version.number] * count)
        starts = self._starts.get(version.incarnation, [0] * count)
        return [Version(*each) for each in zip(numbers, starts, strict=True)]

    def _slices(
        self, gradient: Gradient, versions: Sequence[Version]
    ) -> list[WithVector[bridge_pb2.Update]]:
        """Return the messages for the shards; BridgeError for a gradient that no shard takes."""
        vector, last = gradient.vector, len(self._shards) - 1
        size = self._bounds[-1] - (gradient.statistics[0].vector.size if gradient.statistics else 0)
        if vector.shape != (size,):
            raise BridgeError(
                f"the gradient has shape {vector.shape}, the parameters ({size},): "
                "do all servers read one configuration?"
            )
        if not np.isfinite(vector).all():  # else some shards would apply their slices
            raise BridgeError("the gradient is not finite")
        return [
            update_message(
                replace(
                    gradient,
                    vector=vector[begin:end],
                    computed_with=version,
                    statistics=gradient.statistics if number == last else (),
                ),
                at=self._global_t,
            )
            for number, ((begin, end), version) in enumerate(
                zip(pairwise(self._bounds), versions, strict=True)
            )
        ]

    def _read(self, known: Version | None) -> Values:
        return self._take(self._all(self._reads()), known)

    def _reads(self) -> list[bridge_pb2.Known]:
        """Return the messages that ask each shard for its slice, if it has a newer one."""
        return [known_message(None if each is None else each.version) for each in self._before()]

    def _before(self) -> Sequence[Values | None]:
        """Return the latest slice of each shard; None for each before the first answers."""
        return self._latest or [None] * len(self._shards)

    def _all(self, messages: Sequence[_Message]) -> list[_Reply | None]:
        """Call all shards at once; return their answers, with None for each that is away.

        The first of the errors is raised once all calls have ended.
        """
        calls = [
            shard.begin(message, on_this_thread=shard is self._first)
            for shard, message in zip(self._shards, messages, strict=True)
        ]
        replies: list[_Reply | None] = []
        errors = []
        for ended in calls:
            try:
                replies.append(ended())
            except BridgeError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return replies

    def _warn_of_loss(self, number: int, steps: int, reply: _Reply | None, start: int) -> None:
        shard = self._shards[number]
        what = f"a gradient's slice {number + 1} of {len(self._shards)}"
        if number == 0:
            what += f", which counts {steps} steps,"
        if reply is None:
            _log.warning("%s may be lost: shard %s has not confirmed it", what, shard.url)
        elif reply.fields.incarnation != start:
            _log.warning(
                "%s was refused: it was computed with values from before shard %s started again",
                what,
                shard.url,
            )

    def _take(self, replies: Sequence[_Reply | None], known: Version | None) -> Values:
        """Join the answers to values; wait for missing answers."""
        before = self._before()
        found = [
            shard.await_values(None if old is None else old.version) if reply is None else reply
            for shard, reply, old in zip(self._shards, replies, before, strict=True)
        ]
        self._latest = [_slice_of(*pair) for pair in zip(found, before, strict=True)]
        self._bounds = self._bounds_of(found)
        self._global_t = self._latest[0].global_t
        version = self._noted_version()
        vector = None
        if known != version or any(reply.vector is not None for reply in found):
            vector = np.concatenate(
                [each.vector for each in self._latest if each.vector is not None]
            )
            vector.flags.writeable = False
        return Values(version, self._global_t, vector)

    def _bounds_of(self, replies: Sequence[_Reply]) -> list[int]:
        """Return where slices begin and end; BridgeError unless they are a vector in this order."""
        bounds = [0]
        for each in self._latest:
            bounds.append(bounds[-1] + (0 if each.vector is None else each.vector.size))
        shown = [(reply.fields.begin, reply.fields.size) for reply in replies]
        if shown != [(begin, bounds[-1]) for begin in bounds[:-1]]:
            urls = ", ".join(shard.url for shard in self._shards)
            raise BridgeError(
                f"the shards at {urls} are not all shards of one parameter server, in their order"
            )
        return bounds

    def _noted_version(self) -> Version:
        """Return the version of the latest slices, and remember their starts and numbers."""
        starts = [each.version.incarnation for each in self._latest]
        incarnation = sum(starts) % 2**64
        version = Version(self._latest[0].version.number, incarnation)
        _remember(self._starts, incarnation, starts, _KNOWN_STARTS)
        numbers = [each.version.number for each in self._latest]
        _remember(self._numbers, version, numbers, _KNOWN_VERSIONS)
        return version


def _remember(known: OrderedDict[_Key, list[int]], key: _Key, found: list[int], most: int) -> None:
    known[key] = found
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)


def _slice_of(reply: _Reply, before: Values | None) -> Values:
    """Return the slice of an answer, which may be the one before."""
    fields, vector = reply.fields, reply.vector
    if vector is None:
        if before is None:
            raise BridgeError("a shard sent no values, though they are not known here")
        vector = before.vector
    return Values(Version(fields.version, fields.incarnation), fields.global_t, vector)
