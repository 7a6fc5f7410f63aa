"""The gRPC service of shards: what workers ask of each, and what the first says to the others."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import grpc
import numpy as np

from relaax.algorithm_base import FloatVector, Shard
from relaax.net.refusals import refuse, unary
from relaax.parameters import shards_pb2
from relaax.parameters.process.shards.leader import Leader
from relaax.parameters.process.shards.members import MemberInfo, NotWhole, Said
from relaax.parameters.process.shards.orders import Beginning, End, Heard, News, Save, Update
from relaax.parameters.sender_totals import require_possible
from relaax.parameters.shard_messages import SERVICE_NAME, SLICES, STAGED_SLICES
from relaax.parameters.vectors import WithVector

_log = logging.getLogger(__name__)

_NOTHING = np.zeros(0, np.float32)

_SAID = {
    shards_pb2.MemberReport.BEGUN: Said.BEGUN,
    shards_pb2.MemberReport.SAVED: Said.SAVED,
    shards_pb2.MemberReport.FAILED: Said.FAILED,
    shards_pb2.MemberReport.LEAVES: Said.LEAVES,
    shards_pb2.MemberReport.DAMAGED: Said.DAMAGED,
}


class Holder(Protocol):
    """A shard, as workers see it."""

    def stage(
        self, worker: int, sequence: int, incarnation: int, gradient: FloatVector, settled: int
    ) -> int:
        """Keep a slice; return the present incarnation."""

    def read(self, incarnation: int, at_least: int) -> tuple[int, FloatVector, int, int]:
        """Return the incarnation, the values, their number, and the global step."""


class ShardServicer:
    """Turns gRPC messages into calls of a shard, and back.

    ``leader`` is the first shard, in its own process.
    """

    def __init__(self, holder: Holder, begin: int, size: int, leader: Leader | None = None) -> None:
        self._holder = holder
        self._begin, self._size = begin, size
        self._leader = leader

    def stage(
        self, request: WithVector[shards_pb2.StagedSlice], context: grpc.ServicerContext
    ) -> shards_pb2.Staged:
        """Keep a slice of a gradient."""
        fields, vector = request.fields, _NOTHING if request.vector is None else request.vector
        with _refusing(context):
            incarnation = self._holder.stage(
                fields.worker, fields.sequence, fields.incarnation, vector, fields.settled
            )
        return shards_pb2.Staged(incarnation=incarnation)

    def commit(
        self, request: shards_pb2.Commitment, context: grpc.ServicerContext
    ) -> shards_pb2.Committed:
        """Let all shards apply what was staged."""
        with _refusing(context):
            require_possible(request.steps)
            incarnation, number, global_t = self._first().commit(
                request.worker, request.sequence, request.incarnation, request.steps
            )
        sys.audit("relaax.shards.committed")
        return shards_pb2.Committed(incarnation=incarnation, number=number, global_t=global_t)

    def read(
        self, request: shards_pb2.SliceQuery, context: grpc.ServicerContext
    ) -> WithVector[shards_pb2.Slice]:
        """Return the slice's values, unless the caller has them."""
        with _refusing(context):
            found = self._holder.read(request.incarnation, request.at_least)
        incarnation, vector, number, global_t = found
        fields = shards_pb2.Slice(
            incarnation=incarnation,
            number=number,
            global_t=global_t,
            begin=self._begin,
            size=self._size,
        )
        is_known = (incarnation, number) == (request.incarnation, request.number)
        return WithVector(fields, None if is_known else vector)

    def follow(
        self, request: shards_pb2.Member, context: grpc.ServicerContext
    ) -> Iterator[shards_pb2.Order]:
        """Say to another shard what it has to do."""
        member = MemberInfo(
            Shard(request.index, request.count),
            request.address,
            request.size,
            request.incarnation,
            request.position,
        )
        with _refusing(context):
            for news in self._first().follow(member, context.is_active):
                yield message_of(news)

    def report(
        self, request: shards_pb2.MemberReport, context: grpc.ServicerContext
    ) -> shards_pb2.Reported:
        """Take note of what another shard has done."""
        with _refusing(context):
            said = _SAID[request.what]
            self._first().report(
                request.index, said, request.incarnation, request.set, request.text
            )
        return shards_pb2.Reported()

    def _first(self) -> Leader:
        if self._leader is None:
            raise ValueError("only the first shard answers this")
        return self._leader


@contextmanager
def _refusing(context: grpc.ServicerContext) -> Iterator[None]:
    """End a call with the code of what is raised within."""
    try:
        yield
    except NotWhole as error:
        context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
    except (ValueError, KeyError) as error:
        refuse(_log, context, error)


def message_of(news: News) -> shards_pb2.Order:
    """Return what another shard is told as a message."""
    match news:
        case Heard():
            return shards_pb2.Order(heard=True)
        case Beginning():
            vector = b"" if news.vector is None else news.vector.astype("<f4").tobytes()
            begin = shards_pb2.Begin(
                incarnation=news.incarnation,
                number=news.number,
                global_t=news.global_t,
                set=news.set_id,
                vector=vector,
            )
            return shards_pb2.Order(begin=begin)
        case Update():
            update = shards_pb2.Update(
                worker=news.worker,
                sequence=news.sequence,
                number=news.number,
                global_t=news.global_t,
                steps=news.steps,
            )
            return shards_pb2.Order(update=update)
        case Save():
            save = shards_pb2.Save(set=news.set_id, global_t=news.global_t, kept=news.kept)
            return shards_pb2.Order(save=save)
        case End():
            return shards_pb2.Order(end=True)


def news_of(message: shards_pb2.Order) -> News:
    """Return what a message of the first shard says."""
    match message.WhichOneof("what"):
        case "heard":
            return Heard()
        case "begin":
            begin = message.begin
            vector = np.frombuffer(begin.vector, "<f4") if begin.vector else None
            return Beginning(begin.incarnation, begin.number, begin.global_t, begin.set, vector)
        case "update":
            update = message.update
            return Update(
                update.worker, update.sequence, update.number, update.global_t, update.steps
            )
        case "save":
            return Save(message.save.set, message.save.global_t, tuple(message.save.kept))
        case _:
            return End()


def method_handlers(servicer: ShardServicer) -> grpc.GenericRpcHandler:
    """Return what a gRPC server answers calls with."""
    stream = grpc.unary_stream_rpc_method_handler
    handlers = {
        "Stage": unary(servicer.stage, STAGED_SLICES.decode, shards_pb2.Staged.SerializeToString),
        "Commit": unary(
            servicer.commit,
            shards_pb2.Commitment.FromString,
            shards_pb2.Committed.SerializeToString,
        ),
        "Read": unary(servicer.read, shards_pb2.SliceQuery.FromString, SLICES.encode),
        "Follow": stream(
            servicer.follow, shards_pb2.Member.FromString, shards_pb2.Order.SerializeToString
        ),
        "Report": unary(
            servicer.report,
            shards_pb2.MemberReport.FromString,
            shards_pb2.Reported.SerializeToString,
        ),
    }
    return grpc.method_handlers_generic_handler(SERVICE_NAME, handlers)
