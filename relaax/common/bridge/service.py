"""The parameter server's end of the bridge."""

import secrets
from collections.abc import Callable
from typing import NoReturn, TypeVar

import grpc
import numpy as np

from relaax.algorithm_base.bridge_base import BridgeBase, FloatVector, Phase, Values, Version
from relaax.common.bridge import bridge_pb2, bridge_pb2_grpc

_PHASES = {
    Phase.TRAINING: bridge_pb2.Status.TRAINING,
    Phase.SERVING: bridge_pb2.Status.SERVING,
    Phase.CLOSING: bridge_pb2.Status.CLOSING,
}

Reply = TypeVar("Reply")


class ParameterServerServicer(bridge_pb2_grpc.ParameterServerServicer):  # type: ignore[misc]
    """Turns gRPC messages into calls of an algorithm's service, and back.

    It knows what survives a restart and what does not: a version of another incarnation is no
    version here, and a gradient computed with one is dropped.
    """

    def __init__(self, service: BridgeBase) -> None:
        self.phase = Phase.TRAINING
        self._service = service
        self._incarnation = secrets.randbits(63) + 1

    def IncrementGlobalT(  # noqa: N802
        self, request: bridge_pb2.Steps, context: grpc.ServicerContext
    ) -> bridge_pb2.GlobalStep:
        """Count environment steps."""
        global_t = _answer(context, lambda: self._service.increment_global_t(request.count))
        return bridge_pb2.GlobalStep(global_t=global_t)

    def ApplyGradients(  # noqa: N802
        self, request: bridge_pb2.Gradients, context: grpc.ServicerContext
    ) -> bridge_pb2.Values:
        """Apply a gradient, count its steps, and return newer values to who wants them."""
        return _answer(context, lambda: self._apply(request))

    def GetValues(  # noqa: N802
        self, request: bridge_pb2.Known, context: grpc.ServicerContext
    ) -> bridge_pb2.Values:
        """Return the values, or "not modified"."""
        known = self._version_of(request)
        return _answer(context, lambda: self._values_message(self._service.get_values(known)))

    def StoreScalarMetric(  # noqa: N802
        self, request: bridge_pb2.ScalarMetrics, context: grpc.ServicerContext
    ) -> bridge_pb2.Nothing:
        """Hand scalars to the metrics of the parameter server."""
        metrics = self._service.metrics()
        for metric in request.metrics:
            metrics.scalar(metric.name, metric.y, metric.x if metric.HasField("x") else None)
        return bridge_pb2.Nothing()

    def GetStatus(  # noqa: N802
        self, request: bridge_pb2.Nothing, context: grpc.ServicerContext
    ) -> bridge_pb2.Status:
        """Say whether the training goes on."""
        return bridge_pb2.Status(
            phase=_PHASES[self.phase], global_t=self._service.increment_global_t(0)
        )

    def _apply(self, request: bridge_pb2.Gradients) -> bridge_pb2.Values:
        computed_with = None
        if request.HasField("computed_with"):
            computed_with = self._version_of(request.computed_with)
            if computed_with is None:
                return self._values_message(self._service.get_values())
        gradients = _vector_of(request.vector)
        if not request.want_values:
            self._service.apply_gradients(gradients, computed_with)
            self._service.increment_global_t(request.steps)
            return bridge_pb2.Values(incarnation=self._incarnation)
        values = self._service.synchronize(gradients, request.steps, computed_with)
        return self._values_message(values)

    def _version_of(self, known: bridge_pb2.Known) -> Version | None:
        if known.incarnation != self._incarnation:
            return None
        return Version(known.version, known.incarnation)

    def _values_message(self, values: Values) -> bridge_pb2.Values:
        return bridge_pb2.Values(
            incarnation=self._incarnation,
            version=values.version.number,
            global_t=values.global_t,
            vector=None if values.vector is None else _bytes_of(values.vector),
        )


def _bytes_of(vector: FloatVector) -> bytes:
    """Return a vector as little-endian float32, without a copy where it lies in bytes already."""
    lies_in: object = vector.base
    is_little_endian = vector.dtype == np.dtype("<f4")
    if is_little_endian and isinstance(lies_in, bytes) and len(lies_in) == vector.nbytes:
        return lies_in
    return vector.astype("<f4", copy=False).tobytes()


def _vector_of(data: bytes) -> FloatVector:
    if len(data) % 4:
        raise ValueError(f"a float32 vector cannot have {len(data)} bytes")
    return np.frombuffer(data, "<f4")


def _answer(context: grpc.ServicerContext, call: Callable[[], Reply]) -> Reply:
    """Return what ``call`` returns; a ValueError is the caller's fault and is told to it."""
    try:
        return call()
    except ValueError as error:
        _refuse(context, str(error))


def _refuse(context: grpc.ServicerContext, reason: str) -> NoReturn:
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, reason)
    raise AssertionError("abort raises")
