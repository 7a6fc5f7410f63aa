"""Calls Memoire's gRPC service."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
import numpy.typing as npt

from relaax.compat.memoire import memoire_pb2
from relaax.compat.memoire.entry import LAST, templates_of
from relaax.compat.memoire.service import CACHES, PUBLICATIONS, SERVICE_NAME
from relaax.compat.memoire.topics import NOTHING, Message
from relaax.errors import BridgeError
from relaax.net.channels import open_channel
from relaax.net.payloads import WithPayload
from relaax.replay import replay_pb2
from relaax.replay.client.stub import AWAY, TOO_LARGE, ReplayAway
from relaax.replay.schema import Schema
from relaax.replay.table import Sample
from relaax.replay.wire import items_message, schema_of
from relaax.replay.writers import UnknownWriter

#: How long a call takes at most, beside the time that it is asked to wait.
CALL_TIMEOUT_S = 10.0

Array = npt.NDArray[Any]

_AWAY = (*AWAY, grpc.StatusCode.RESOURCE_EXHAUSTED)


@dataclass(frozen=True)
class SlotInfo:
    """What a client knows of the server's memory."""

    slot_index: int
    num_slot: int
    max_step: int
    entry_size: int
    uuid: str
    schema: Schema
    #: The properties of the memory, by name.
    settings: Mapping[str, Any]
    #: For how many seconds at most nothing may be heard of the client.
    lease_s: float

    @property
    def view(self) -> tuple[Array, ...]:
        """Zeros of the types and shapes of an entry's fields."""
        return templates_of(self.schema)

    @property
    def reward_buf(self) -> Array:
        """A reward of zeros."""
        return self.view[-len(LAST)]

    @property
    def prob_buf(self) -> Array:
        """A probability of 0."""
        return self.view[-2]

    @property
    def value_buf(self) -> Array:
        """A value of zeros."""
        return self.view[-1]

    @property
    def qvest_buf(self) -> Array:
        """A return of zeros."""
        return self.view[-1]


class MemoireStub:
    """A server, or proxy, at a gRPC ``target``; made after a fork, since gRPC has threads."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._channel = open_channel(target)
        self._get_info = self._method(
            "GetInfo", memoire_pb2.Client.SerializeToString, memoire_pb2.Info.FromString
        )
        self._fetch = self._method(
            "Fetch", memoire_pb2.Topic.SerializeToString, PUBLICATIONS.decode
        )
        self._push_cache = self._method("PushCache", CACHES.encode, replay_pb2.Nothing.FromString)
        self._publish = self._method("Publish", PUBLICATIONS.encode, replay_pb2.Nothing.FromString)
        self._write_log = self._method(
            "WriteLog", memoire_pb2.LogLine.SerializeToString, replay_pb2.Nothing.FromString
        )

    def get_info(self, writer: str, timeout_s: float) -> SlotInfo:
        """Take a slot for a client; ReplayAway if other clients have all."""
        message = self._call(self._get_info, memoire_pb2.Client(writer=writer), timeout_s)
        return SlotInfo(
            message.slot_index,
            message.num_slot,
            message.max_step,
            message.entry_size,
            message.uuid,
            schema_of(message.columns),
            {
                **message.settings,
                "discount_factor": list(message.discount_factor),
                "reward_coeff": list(message.reward_coeff),
            },
            message.lease_s,
        )

    def fetch(self, topic: str, known: int, timeout_s: float) -> Message | None:
        """Return the newest message of a topic, unless it is ``known``; None without one."""
        request = memoire_pb2.Topic(name=topic, known=known, timeout_s=timeout_s)
        answer = self._call(self._fetch, request, timeout_s + CALL_TIMEOUT_S)
        if answer.fields.version == NOTHING:
            return None
        (data,) = answer.payload or (b"",)
        return Message(answer.fields.version, data)

    def push_cache(self, writer: str, sample: Sample, total: float) -> None:
        """Send a sample of a client's own memory; UnknownWriter if it has no slot."""
        items = items_message(sample)
        fields = memoire_pb2.Cache(writer=writer, total=total, items=items.fields)
        self._call(self._push_cache, WithPayload(fields, items.payload), CALL_TIMEOUT_S)

    def publish(self, topic: str, data: bytes) -> None:
        """Publish a message."""
        message = WithPayload(memoire_pb2.Publication(topic=topic), [data])
        self._call(self._publish, message, CALL_TIMEOUT_S)

    def write_log(self, writer: str, message: str) -> None:
        """Write a line to the server's log file."""
        self._call(
            self._write_log, memoire_pb2.LogLine(writer=writer, message=message), CALL_TIMEOUT_S
        )

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _method(self, name: str, encode: Any, decode: Any) -> Any:
        return self._channel.unary_unary(f"/{SERVICE_NAME}/{name}", encode, decode)

    def _call(self, method: Any, message: Any, timeout_s: float) -> Any:
        try:
            return method(message, timeout=timeout_s)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise UnknownWriter(error.details()) from error
            text = f"Memoire server {self.target}: {error.details()}"
            is_away = error.code() in _AWAY and TOO_LARGE not in text
            raise ReplayAway(text) if is_away else BridgeError(text) from error
