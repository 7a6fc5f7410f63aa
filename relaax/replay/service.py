"""The replay server's end of its gRPC service."""

import logging
import secrets
import sys
import threading
from collections.abc import Callable, Collection
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import grpc
import numpy.typing as npt

from relaax.address import Address
from relaax.errors import ConfigurationError
from relaax.net import channel_options
from relaax.net.guarded_server import GuardedServer
from relaax.net.payloads import WithPayload
from relaax.net.refusals import handlers_of, refuse
from relaax.replay import replay_pb2
from relaax.replay.replay import NotReady, Replay
from relaax.replay.segments import MappedSegments, placed_message
from relaax.replay.specs import MOST_STEPS_AT_ONCE
from relaax.replay.wire import (
    ITEMS,
    PRIORITIES,
    SERVICE,
    STEPS,
    column_messages,
    items_message,
    priorities_of,
    require_finite,
    runs_of,
    schema_of,
    state_message,
)
from relaax.replay.writers import MissingSteps, NoFreeSlot, UnknownWriter

Array = npt.NDArray[Any]

_log = logging.getLogger(__name__)

#: A call waits no longer than this at the server: its thread is one of a few.
LONGEST_WAIT_S = 2.0

#: So many calls may wait until tables take their steps; more are refused at once, to be tried
#: again. Threads are left for samplers, which make room.
MOST_WAITING = 16

#: More are not drawn at once: items are drawn again and again, and would not end with the table.
MOST_ITEMS = 100_000

#: Threads that answer writers and samplers. A writer that waits for room holds one.
THREADS = 32

#: How long steps are still taken, and dropped, when learning has ended: workers end meanwhile.
LINGER_S = 1.5

_CODES: dict[type[Exception], grpc.StatusCode] = {
    NotReady: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UnknownWriter: grpc.StatusCode.NOT_FOUND,
    KeyError: grpc.StatusCode.INVALID_ARGUMENT,
    MissingSteps: grpc.StatusCode.OUT_OF_RANGE,
    NoFreeSlot: grpc.StatusCode.UNAVAILABLE,
    ValueError: grpc.StatusCode.INVALID_ARGUMENT,
    ConfigurationError: grpc.StatusCode.INVALID_ARGUMENT,  # of unknown columns
}


Reply = TypeVar("Reply")


class ReplayServicer:
    """Turns gRPC messages into calls of a replay, and back.

    Steps are refused where a column of ``finite`` is not finite; all columns must be, without it.
    """

    def __init__(self, replay: Replay, finite: Collection[str] | None = None) -> None:
        self._replay = replay
        self._finite = finite
        self._segments = MappedSegments()
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)
        self._incarnation = secrets.randbits(63) + 1

    def describe(
        self, request: replay_pb2.Nothing, context: grpc.ServicerContext
    ) -> replay_pb2.Description:
        """Return the schema of a step, and the tables."""
        kinds = self._replay.table_kinds()
        return replay_pb2.Description(
            columns=column_messages(self._replay.schema),
            tables=[
                replay_pb2.Table(name=name, items=items, kind=kinds[name])
                for name, items in self._replay.table_sizes().items()
            ],
        )

    def open(self, request: replay_pb2.Opening, context: grpc.ServicerContext) -> replay_pb2.Opened:
        """Let a writer write, unless its steps are others."""
        differences = answered(
            context, lambda: self._replay.open_writer(request.writer, schema_of(request.columns))
        )
        if differences:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "; ".join(differences))
        return replay_pb2.Opened(incarnation=self._incarnation, lease_s=self._replay.lease_s)

    def append(
        self, request: WithPayload[replay_pb2.Steps], context: grpc.ServicerContext
    ) -> replay_pb2.Stored:
        """Store steps; without any, take note that the writer is connected."""
        may_wait = self._waiting.acquire(blocking=False)
        try:
            timeout_s = LONGEST_WAIT_S if may_wait else 0.0
            return answered(context, lambda: self._append(request, timeout_s))
        finally:
            if may_wait:
                self._waiting.release()

    def admit(
        self, request: replay_pb2.Admission, context: grpc.ServicerContext
    ) -> replay_pb2.Nothing:
        """Let rollouts begin, and end others."""
        may_wait = self._waiting.acquire(blocking=False)
        timeout_s = min(request.timeout_s, LONGEST_WAIT_S) if may_wait else 0.0
        try:
            answered(context, lambda: self._admit(request, timeout_s))
        finally:
            if may_wait:
                self._waiting.release()
        return replay_pb2.Nothing()

    def close(
        self, request: replay_pb2.Writer, context: grpc.ServicerContext
    ) -> replay_pb2.Nothing:
        """Forget a writer."""
        self._replay.close_writer(request.writer)
        return replay_pb2.Nothing()

    def sample(
        self, request: replay_pb2.Request, context: grpc.ServicerContext
    ) -> WithPayload[replay_pb2.Items]:
        """Draw items."""
        return answered(context, lambda: self._sample(request))

    def watch(
        self, request: replay_pb2.Watching, context: grpc.ServicerContext
    ) -> replay_pb2.State:
        """Wait until items may be drawn; return the state of a table."""
        timeout_s = min(request.timeout_s, LONGEST_WAIT_S)
        state = answered(
            context, lambda: self._replay.watch(request.table, request.at_least, timeout_s)
        )
        return state_message(state, self._incarnation)

    def update_priorities(
        self, request: WithPayload[replay_pb2.Priorities], context: grpc.ServicerContext
    ) -> replay_pb2.Updated:
        """Give items other priorities, unless they were drawn of a store that is gone."""
        fields = request.fields
        if fields.incarnation not in (0, self._incarnation):
            return replay_pb2.Updated(gone=fields.count)
        return answered(
            context,
            lambda: replay_pb2.Updated(
                gone=self._replay.update_priorities(fields.table, *priorities_of(request))
            ),
        )

    def get_stats(
        self, request: replay_pb2.Nothing, context: grpc.ServicerContext
    ) -> replay_pb2.Stats:
        """Return counts by name."""
        return replay_pb2.Stats(values=self._replay.stats())

    def forget_memory(self) -> None:
        """Give up the memory of clients; to be called when no call is answered any more."""
        self._segments.close()

    def _admit(self, request: replay_pb2.Admission, timeout_s: float) -> None:
        if request.released:
            self._replay.release(request.writer, request.released)
            return
        self._replay.admit(
            request.writer,
            request.environments,
            request.version,
            timeout_s,
            has_delivered=request.has_delivered,
        )

    def _append(
        self, request: WithPayload[replay_pb2.Steps], timeout_s: float
    ) -> replay_pb2.Stored:
        writer, deadline = request.fields.writer, monotonic() + timeout_s
        following = []
        sys.audit("relaax.replay.store")
        runs = list(runs_of(request, self._replay.schema_of(writer)))
        if not runs:
            self._replay.hear_writer(writer)
        for run in runs:
            require_finite(run.rows, self._finite)
        for run in runs:
            left = max(0.0, deadline - monotonic())
            following.append(
                self._replay.append(writer, run.environment, run.first, run.rows, run.flags, left)
            )
        sys.audit("relaax.replay.stored")
        return replay_pb2.Stored(next=following)

    def _sample(self, request: replay_pb2.Request) -> WithPayload[replay_pb2.Items]:
        if request.count > MOST_ITEMS:
            raise ValueError(f"at most {MOST_ITEMS} items are drawn at once, not {request.count}")
        timeout_s = min(request.timeout_s, LONGEST_WAIT_S)
        charge = request.charge if request.HasField("charge") else None
        draw = partial(self._replay.sample, request.table, request.count, timeout_s, charge)
        room = self._segments.room(request.segment) if request.HasField("segment") else None
        if room is not None:
            return placed_message(draw(empty=room.empty), room)
        sample = draw()
        with self._replay.times.of("serialize"):
            return items_message(sample)


def method_handlers(servicer: ReplayServicer) -> grpc.GenericRpcHandler:
    """Return the handlers of a gRPC server."""
    return handlers_of(SERVICE, servicer, STEPS, ITEMS, PRIORITIES)


def answered(context: grpc.ServicerContext, call: Callable[[], Reply]) -> Reply:
    """Return the result of ``call``; end the RPC with a status for its exceptions.

    A mistake of the caller is logged with the caller's address.
    """
    try:
        return call()
    except tuple(_CODES) as error:
        code = next(code for kind, code in _CODES.items() if isinstance(error, kind))
        if code is grpc.StatusCode.INVALID_ARGUMENT:
            refuse(_log, context, error)
        context.abort(code, str(error))
        raise AssertionError("abort raises") from error


class ReplayPort:
    """Serves a replay at an address; OSError if the port is taken.

    A message may be twice as large as the most steps that a writer sends at once.
    """

    def __init__(self, address: Address, replay: Replay) -> None:
        most_bytes = channel_options.most_bytes_of(MOST_STEPS_AT_ONCE * replay.schema.most_bytes)
        self._servicer = ReplayServicer(replay)
        self._server = GuardedServer(
            THREADS, [method_handlers(self._servicer)], most_bytes=most_bytes
        )
        self._server.start(str(address))

    def close(self, grace_s: float = 1.0) -> None:
        """Refuse new calls, and close when the running ones are done, or after ``grace_s``."""
        self._server.stop(grace_s).wait()
        self._servicer.forget_memory()
