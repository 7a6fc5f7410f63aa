"""The server's end of Memoire's gRPC service."""

import threading
from collections.abc import Callable

import grpc

from relaax.compat.memoire import memoire_pb2
from relaax.compat.memoire.topics import NOTHING, Message, Topics
from relaax.net.payloads import Buffer, PayloadCodec, WithPayload
from relaax.net.refusals import unary
from relaax.replay import replay_pb2
from relaax.replay.service import answered
from relaax.replay.table import Sample
from relaax.replay.wire import require_bytes, sample_of

SERVICE_NAME = memoire_pb2.DESCRIPTOR.services_by_name["Memoire"].full_name
PUBLICATIONS = PayloadCodec(memoire_pb2.Publication, "data")
CACHES = PayloadCodec(memoire_pb2.Cache, "data")

#: A call waits no longer than this at the server: its thread is one of a few.
LONGEST_WAIT_S = 2.0

#: Subscribers that wait at the same time, each of which has a thread; others ask again.
MOST_WAITING = 32


#: What a client has drawn takes no more: its frames overlap where they are stacked.
MOST_CACHE_BYTES = 1024 * 1024 * 1024


class TopicServicer:
    """Answers subscribers."""

    def __init__(self, newest: Callable[[str, int, float], Message | None]) -> None:
        self._newest = newest
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)

    def fetch(
        self, request: memoire_pb2.Topic, context: grpc.ServicerContext
    ) -> WithPayload[memoire_pb2.Publication]:
        """Return the newest message of a topic, and wait for it unless too many wait already."""
        may_wait = self._waiting.acquire(blocking=False)
        try:
            timeout_s = min(request.timeout_s, LONGEST_WAIT_S) if may_wait else 0.0
            message = self._newest(request.name, request.known, timeout_s)
        finally:
            if may_wait:
                self._waiting.release()
        if message is None:
            return WithPayload(memoire_pb2.Publication(version=NOTHING), None)
        return WithPayload(memoire_pb2.Publication(version=message.version), [message.data])


class MemoireServicer:
    """Answers clients.

    ``info_of`` gives a client its slot; ``put_cache`` takes a name, a sample and a sum of weights,
    ``write_log`` a name and a line, ``publish`` a topic and a message.
    """

    def __init__(
        self,
        info_of: Callable[[str], memoire_pb2.Info],
        put_cache: Callable[[str, Sample, float], None],
        write_log: Callable[[str, str], None],
        publish: Callable[[str, Buffer], None],
        topics: Topics,
    ) -> None:
        self._info_of = info_of
        self._put_cache = put_cache
        self._write_log = write_log
        self._publish = publish
        self._topics = TopicServicer(topics.newest)

    def get_info(
        self, request: memoire_pb2.Client, context: grpc.ServicerContext
    ) -> memoire_pb2.Info:
        """Give a client its slot, and say what an entry is."""
        return answered(context, lambda: self._info_of(request.writer))

    def push_cache(
        self, request: WithPayload[memoire_pb2.Cache], context: grpc.ServicerContext
    ) -> replay_pb2.Nothing:
        """Take what a client has drawn of its own memory."""
        answered(context, lambda: self._push_cache(request))
        return replay_pb2.Nothing()

    def publish(
        self, request: WithPayload[memoire_pb2.Publication], context: grpc.ServicerContext
    ) -> replay_pb2.Nothing:
        """Publish a message."""
        (data,) = request.payload or (b"",)
        self._publish(request.fields.topic, data)
        return replay_pb2.Nothing()

    def write_log(
        self, request: memoire_pb2.LogLine, context: grpc.ServicerContext
    ) -> replay_pb2.Nothing:
        """Write a line to the log file."""
        answered(context, lambda: self._write_log(request.writer, request.message))
        return replay_pb2.Nothing()

    def _push_cache(self, request: WithPayload[memoire_pb2.Cache]) -> None:
        fields = request.fields
        require_bytes(fields.items, MOST_CACHE_BYTES)
        sample = sample_of(WithPayload(fields.items, request.payload))
        self._put_cache(fields.writer, sample, fields.total)

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return what a gRPC server answers calls with."""
        handlers = {
            "GetInfo": unary(
                self.get_info, memoire_pb2.Client.FromString, memoire_pb2.Info.SerializeToString
            ),
            "PushCache": unary(
                self.push_cache, CACHES.decode, replay_pb2.Nothing.SerializeToString
            ),
            "Publish": unary(
                self.publish, PUBLICATIONS.decode, replay_pb2.Nothing.SerializeToString
            ),
            "WriteLog": unary(
                self.write_log, memoire_pb2.LogLine.FromString, replay_pb2.Nothing.SerializeToString
            ),
            "Fetch": fetch_handler(self._topics),
        }
        return grpc.method_handlers_generic_handler(SERVICE_NAME, handlers)


def fetch_handler(servicer: TopicServicer) -> grpc.RpcMethodHandler:
    """Return what answers subscribers."""
    return unary(servicer.fetch, memoire_pb2.Topic.FromString, PUBLICATIONS.encode)
