"""Messages that carry a vector, made of roles' values and read as these."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from relaax.algorithm_base import (
    DEFAULT,
    Gradient,
    Lineage,
    NewValues,
    Phase,
    PublishedInfo,
    Slice,
    Statistics,
    Values,
    Version,
)
from relaax.net.payloads import PayloadCodec, WithPayload
from relaax.parameters import bridge_pb2

Fields = TypeVar("Fields", bound=Message)

SERVICE = bridge_pb2.DESCRIPTOR.services_by_name["ParameterServer"]
SERVICE_NAME = SERVICE.full_name


@dataclass(frozen=True)
class WithVector(Generic[Fields]):
    """A message's other fields, and its vector."""

    fields: Fields
    #: float32 [size]; None where the message has no vector.
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
        """Return the message, its vector a view of ``data``; ValueError for other bytes."""
        message = self._codec.decode(data)
        if message.payload is None:
            return WithVector(message.fields, None)
        (vector,) = message.payload
        if len(vector) % 4:
            raise ValueError(f"a float32 vector cannot have {len(vector)} bytes")
        return WithVector(message.fields, np.frombuffer(vector, "<f4"))


UPDATES = VectorCodec(bridge_pb2.Update)
VALUES = VectorCodec(bridge_pb2.Values)

PHASES = {
    Phase.TRAINING: bridge_pb2.Status.TRAINING,
    Phase.SERVING: bridge_pb2.Status.SERVING,
    Phase.CLOSING: bridge_pb2.Status.CLOSING,
}

#: A checkpoint keeps the learner's count of its steps in 64 bits, one of them for the sign.
_MOST_ITERATIONS = 2**63 - 1

_NOTHING = np.zeros(0, np.float32)


def known_message(
    known: Version | None, policy: str = DEFAULT, identifier: str = ""
) -> bridge_pb2.Known:
    """Return the message that asks for values unless they are ``known``."""
    version = known or Version(0)
    return bridge_pb2.Known(
        incarnation=version.incarnation,
        version=version.number,
        policy=_named(policy),
        identifier=identifier,
    )


def update_message(
    update: Gradient | Statistics,
    at: int | None = None,
    want_values: bool = True,
    policy: str = DEFAULT,
) -> WithVector[bridge_pb2.Update]:
    """Return the message that brings an update; a gradient's slice is applied as at step ``at``."""
    if isinstance(update, Statistics):
        fields = bridge_pb2.Update(want_values=want_values, policy=_named(policy))
        fields.statistics.append(_bytes_of(update))
        return WithVector(fields, None)
    version = update.computed_with
    fields = bridge_pb2.Update(
        computed_with=None if version is None else known_message(version),
        steps=update.steps,
        want_values=want_values,
        at=at,
        policy=_named(policy),
        statistics=map(_bytes_of, update.statistics),
    )
    return WithVector(fields, update.vector)


def _bytes_of(statistics: Statistics) -> bytes:
    return statistics.vector.astype("<f4").tobytes()


def new_values_message(new: NewValues, policy: str = DEFAULT) -> WithVector[bridge_pb2.Update]:
    """Return the message that brings values which replace others."""
    shown = new.lineage or Lineage()
    lineage = bridge_pb2.Lineage(
        training=shown.training, holds=shown.holds, resumes=shown.resumes, afresh=shown.is_afresh
    )
    said = bridge_pb2.NewValues(iteration=new.iteration, message=new.message, lineage=lineage)
    return WithVector(bridge_pb2.Update(new_values=said, policy=_named(policy)), new.vector)


def _named(policy: str) -> str:
    """Return a policy's name in a message; "" for the default one."""
    return "" if policy == DEFAULT else policy


def update_of(
    request: WithVector[bridge_pb2.Update], computed_with: Version | None
) -> Gradient | Statistics:
    """Return a gradient, or the statistics that come alone."""
    statistics = [Statistics(np.frombuffer(each, "<f4")) for each in request.fields.statistics]
    if request.vector is None and len(statistics) == 1:
        return statistics[0]
    gradient = _NOTHING if request.vector is None else request.vector
    return Gradient(gradient, computed_with, request.fields.steps, statistics)


def new_values_of(request: WithVector[bridge_pb2.Update]) -> NewValues:
    """Return values that replace others; ValueError for counts that no checkpoint can hold."""
    new, shown = request.fields.new_values, request.fields.new_values.lineage
    for step in (new.iteration, shown.holds, shown.resumes):
        if step > _MOST_ITERATIONS:
            raise ValueError(f"iteration {step} is above {_MOST_ITERATIONS}")
    vector = _NOTHING if request.vector is None else request.vector
    lineage = Lineage(shown.training, shown.holds, shown.resumes, shown.afresh)
    return NewValues(vector, new.iteration, new.message, lineage)


def values_message(
    values: Values, incarnation: int, part: Slice | None
) -> WithVector[bridge_pb2.Values]:
    """Return the message that brings values, or the ``part`` of them that a shard owns."""
    fields = bridge_pb2.Values(
        incarnation=incarnation,
        version=values.version.number,
        global_t=values.global_t,
        age=values.age_s,
        published=None if values.info is None else bridge_pb2.Published(**vars(values.info)),
    )
    if part is not None:
        fields.begin, fields.size = part.begin, part.size
    return WithVector(fields, values.vector)


def values_of(reply: WithVector[bridge_pb2.Values]) -> Values:
    """Return the values of a message."""
    fields = reply.fields
    version = Version(fields.version, fields.incarnation)
    age_s = fields.age if fields.HasField("age") else None
    info, said = None, fields.published
    if fields.HasField("published"):
        info = PublishedInfo(said.time, said.iteration, said.message, said.hash)
    return Values(version, fields.global_t, reply.vector, age_s, info)
