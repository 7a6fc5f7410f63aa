"""Messages that carry a vector."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from relaax.net.payloads import PayloadCodec, WithPayload
from relaax.parameters import bridge_pb2

Fields = TypeVar("Fields", bound=Message)

SERVICE = bridge_pb2.DESCRIPTOR.services_by_name["ParameterServer"]
SERVICE_NAME = SERVICE.full_name


@dataclass(frozen=True)
class WithVector(Generic[Fields]):
    """A message's other fields, and its vector."""

    fields: Fields
    #: float32 [size]; None where the message has none.
    vector: npt.NDArray[np.float32] | None


class VectorCodec(Generic[Fields]):
    """Encodes and decodes a type of message whose field ``vector`` is little-endian float32."""

    def __init__(self, message_type: type[Fields]) -> None:
        self.message_type = message_type
        self._codec = PayloadCodec(message_type, "vector")

    def encode(self, message: WithVector[Fields]) -> bytes:
        """Return the message's bytes."""
        payload = None
        if message.vector is not None:
            payload = [np.ascontiguousarray(message.vector, "<f4").data]
        return self._codec.encode(WithPayload(message.fields, payload))

    def decode(self, data: bytes) -> WithVector[Fields]:
        """Return the message, its vector a view of ``data``; ValueError for what is none."""
        message = self._codec.decode(data)
        if message.payload is None:
            return WithVector(message.fields, None)
        (vector,) = message.payload
        if len(vector) % 4:
            raise ValueError(f"a float32 vector cannot have {len(vector)} bytes")
        return WithVector(message.fields, np.frombuffer(vector, "<f4"))


UPDATES = VectorCodec(bridge_pb2.Update)
VALUES = VectorCodec(bridge_pb2.Values)
