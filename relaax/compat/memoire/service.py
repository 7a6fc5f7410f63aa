"""Memoire's gRPC service beside ``relaax.replay.Replay``: information, messages, log lines."""

import secrets
import threading
from collections.abc import Callable

import grpc

from relaax.compat.memoire import memoire_pb2, memoire_pb2_grpc
from relaax.compat.memoire.entry import MemoryInfo
from relaax.compat.memoire.memory import LONGEST_WAIT_S, ReplayMemory
from relaax.net.payloads import Buffer, PayloadCodec, WithPayload
from relaax.net.refusals import handlers_of
from relaax.replay import replay_pb2
from relaax.replay.client.stub import ReplayStub
from relaax.replay.service import answered
from relaax.replay.wire import column_messages, schema_of

SERVICE = memoire_pb2.DESCRIPTOR.services_by_name["Memoire"]
PUBLICATIONS = PayloadCodec(memoire_pb2.Publication, "data")

#: Subscribers that wait at the same time, each of which has a thread; others ask again.
MOST_WAITING = 32

#: A topic without a message has this version.
NOTHING = 0

#: How long a call takes at most, beside the time that it is asked to wait.
CALL_TIMEOUT_S = 10.0


class Topics:
    """Messages by topic, of which the newest is kept: a late subscriber gets that one."""

    def __init__(self) -> None:
        #: By topic: a number that no other message of it has, and the message.
        self._messages: dict[str, tuple[int, Buffer]] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._next = secrets.randbits(62) + 1

    def publish(self, topic: str, data: Buffer) -> None:
        """Keep a message in place of the one before."""
        with self._changed:
            self._next += 1
            self._messages[topic] = self._next, data
            self._changed.notify_all()

    def newest(self, topic: str, known: int, timeout_s: float) -> tuple[int, Buffer] | None:
        """Return version and message, unless the version is ``known``; None if there is none.

        Wait for it for as long as ``timeout_s``.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has(topic, known), timeout_s)
            return self._messages[topic] if self._has(topic, known) else None

    def close(self) -> None:
        """Let all calls that wait for messages go on without one."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _has(self, topic: str, known: int) -> bool:
        return topic in self._messages and self._messages[topic][0] != known


class MemoireServicer:
    """Answers clients of a memory; ``write_log`` takes a uuid and a line."""

    def __init__(
        self, memory: ReplayMemory, topics: Topics, write_log: Callable[[str, str], None]
    ) -> None:
        self._memory = memory
        self._topics = topics
        self._write_log = write_log
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)

    def get_info(
        self, request: memoire_pb2.Client, context: grpc.ServicerContext
    ) -> memoire_pb2.Info:
        """Give a client its slot, and describe an entry."""
        info = self._memory
        index = answered(context, lambda: self._memory.slot_of(request.writer))
        return memoire_pb2.Info(
            slot_index=index,
            num_slot=info.num_slot,
            max_step=info.max_step,
            uuid=info.uuid,
            columns=column_messages(info.schema),
            lease_s=info.lease_s,
        )

    def fetch(
        self, request: memoire_pb2.Topic, context: grpc.ServicerContext
    ) -> WithPayload[memoire_pb2.Publication]:
        """Return the newest message of a topic, and wait for it unless too many wait already."""
        may_wait = self._waiting.acquire(blocking=False)
        try:
            timeout_s = min(request.timeout_s, LONGEST_WAIT_S) if may_wait else 0.0
            message = self._topics.newest(request.name, request.known, timeout_s)
        finally:
            if may_wait:
                self._waiting.release()
        version, data = message or (NOTHING, b"")
        return WithPayload(memoire_pb2.Publication(version=version), [data])

    def publish(
        self, request: WithPayload[memoire_pb2.Publication], context: grpc.ServicerContext
    ) -> replay_pb2.Nothing:
        """Publish a message."""
        (data,) = request.payload or (b"",)
        self._topics.publish(request.fields.topic, data)
        return replay_pb2.Nothing()

    def write_log(
        self, request: memoire_pb2.LogLine, context: grpc.ServicerContext
    ) -> replay_pb2.Nothing:
        """Write a line to the log file."""
        uuid = request.writer.rpartition("/")[0]
        answered(context, lambda: self._write_log(uuid, request.message))
        return replay_pb2.Nothing()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the handlers of a gRPC server."""
        return handlers_of(SERVICE, self, PUBLICATIONS)


class MemoireStub(ReplayStub):
    """A server, or proxy, at a gRPC target; made after a fork, since gRPC has threads."""

    def __init__(self, url: str) -> None:
        super().__init__(url, CALL_TIMEOUT_S)
        pb, done = memoire_pb2, replay_pb2.Nothing.FromString
        self._memoire = memoire_pb2_grpc.MemoireStub(self._channel)
        self._fetch = self._method(
            "Fetch", pb.Topic.SerializeToString, PUBLICATIONS.decode, SERVICE.full_name
        )
        self._publish = self._method("Publish", PUBLICATIONS.encode, done, SERVICE.full_name)

    def get_info(self, writer: str, timeout_s: float) -> MemoryInfo:
        """Take a slot for a client; ReplayAway if other clients have all."""
        message = self._call(self._memoire.GetInfo, memoire_pb2.Client(writer=writer), timeout_s)
        return MemoryInfo(
            schema_of(message.columns),
            message.num_slot,
            message.max_step,
            message.uuid,
            message.lease_s,
            message.slot_index,
        )

    def fetch(self, topic: str, known: int, timeout_s: float) -> tuple[int, Buffer] | None:
        """Return version and newest message of a topic, unless it is ``known``; None without."""
        request = memoire_pb2.Topic(name=topic, known=known, timeout_s=timeout_s)
        answer = self._call(self._fetch, request, timeout_s + CALL_TIMEOUT_S)
        (data,) = answer.payload or (b"",)
        return None if answer.fields.version == NOTHING else (answer.fields.version, data)

    def publish(self, topic: str, data: bytes) -> None:
        """Publish a message."""
        self._call(self._publish, WithPayload(memoire_pb2.Publication(topic=topic), [data]))

    def write_log(self, writer: str, message: str) -> None:
        """Write a line to the server's log file."""
        self._call(self._memoire.WriteLog, memoire_pb2.LogLine(writer=writer, message=message))


def message_of(topic: str | Buffer, data: str | Buffer | None) -> tuple[str, bytes]:
    """Return topic and message of ``pub_bytes(topic, data)``, or of ``pub_bytes(data)``."""
    if data is None:
        topic, data = "", topic
    name = topic if isinstance(topic, str) else bytes(topic).decode()
    return name, data.encode() if isinstance(data, str) else bytes(data)
