"""The methods of gRPC services, without a network between: what a port hands to them."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
import numpy as np
from learning_parts import SMALL, SMALL_COLUMNS, small_policy, unpack

from relaax.acting.policies import PulledPolicies
from relaax.acting.remote import LocalInference, forms_of
from relaax.algorithm_base import NullMetrics, NullSaver, ParameterServerBase, Saver, Slice
from relaax.checkpoints.checkpoint_sets import FirstSaver, PartSaver
from relaax.compat.memoire import ReplayMemoryServer
from relaax.compat.memoire import service as memoire_service
from relaax.errors import BridgeError
from relaax.inference import service as inference_service
from relaax.inference.batching import Batching
from relaax.inference.service import InferenceServicer
from relaax.learning.distributions import Categorical
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.names import service as names_service
from relaax.names.leases import Leases
from relaax.parameters import service as bridge_service
from relaax.parameters.optimizers import SGD
from relaax.parameters.parameter_server import ParameterServer, ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.process.shards import FirstServicer, OtherServicer
from relaax.parameters.published import PublishedParameters
from relaax.processes.shard import Shard
from relaax.replay import service as replay_service

#: What a call may raise at its caller; INTERNAL and UNKNOWN are mistakes of the server.
_REFUSALS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
}

#: Of values, and of the slice of each shard.
SIZE = 4


class Refused(Exception):
    """A call has ended with a status that says what its caller did wrong."""


class Context:
    """What a call knows of its caller."""

    def peer(self) -> str:
        return "ipv4:127.0.0.1:9"

    def is_active(self) -> bool:
        return False

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        assert code in _REFUSALS, f"{code}: {details}"
        raise Refused(details)


@dataclass(frozen=True)
class Method:
    """A method: its request's bytes, and the call."""

    deserialize: Callable[[bytes], Any]
    call: Callable[[Any], None]


def calls_in(data: bytes) -> Iterator[bytes]:
    """Yield calls that are written one after another, each behind the 16 bits of its length.

    The first byte of each says which method it is of.
    """
    while len(data) > 2:
        (length,) = struct.unpack_from("<H", data)
        call, data = data[2 : 2 + length], data[2 + length :]
        if call:
            yield call


def joined(*calls: bytes) -> bytes:
    """Return calls as ``calls_in`` reads them."""
    return b"".join(struct.pack("<H", len(call)) + call for call in calls)


def methods(*handlers: grpc.GenericRpcHandler) -> list[Method]:
    """Return all methods of generic handlers, in the order of their names."""
    found = {}
    for handler in handlers:
        found |= handler._method_handlers  # noqa: SLF001 - gRPC shows them nowhere else
    return [_method(found[name]) for name in sorted(found)]


def _method(handler: grpc.RpcMethodHandler) -> Method:
    def call(request: Any) -> None:
        context = Context()
        if handler.unary_stream is not None:
            replies = list(handler.unary_stream(request, context))
        else:
            replies = [handler.unary_unary(request, context)]
        for reply in replies:
            handler.response_serializer(reply)

    return Method(handler.request_deserializer or bytes, call)


def parameter_server() -> list[Method]:
    """Gradients move the values."""
    store = ParameterStore(np.zeros(SIZE, np.float32), SGD(SIZE, 0.0), lambda _: 0.1)
    return _bridge(ParameterService(store, NullMetrics()))


def published() -> list[Method]:
    """A learner publishes the values."""
    return _bridge(ParameterService(PublishedParameters(np.zeros(SIZE, np.float32)), NullMetrics()))


def _bridge(service: Any) -> list[Method]:
    servicer = bridge_service.ParameterServerServicer(service)
    return methods(bridge_service.method_handlers(servicer))


def shard() -> list[Method]:
    """The first of two shards, and how the other one saves, for which it has no place."""
    other = PartSaver(None, Shard(2, 2))
    second, _ = _divided(other, Shard(2, 2))
    saver = FirstSaver(NullSaver(), lambda *_: None)
    first, part = _divided(saver, Shard(1, 2))
    vector = np.zeros(2 * SIZE, np.float32)
    return methods(
        bridge_service.method_handlers(
            bridge_service.ParameterServerServicer(first.bridge(), part=part)
        ),
        FirstServicer(2, vector, saver, first.save_checkpoint).handlers(),
        OtherServicer(second, other).handlers(),
    )


def _divided(saver: Saver, shard: Shard) -> tuple[ParameterServerBase, Slice]:
    store = ParameterStore(np.zeros(2 * SIZE, np.float32), SGD(2 * SIZE, 0.0), lambda _: 0.1)
    service = ParameterService(store, NullMetrics())
    server = ParameterServer(store, service, saver, {"size": SIZE}, float("inf"))
    return server, server.divide(shard)


def let_no_call_wait(put: Callable[[Any, str, float], object] = setattr) -> None:
    """Let calls for items that are not there return at once: ``put`` sets what says how long."""
    for module in (replay_service, memoire_service):
        put(module, "LONGEST_WAIT_S", 0.0)


def replay(store: Any) -> list[Method]:
    """A replay server's."""
    return methods(replay_service.method_handlers(replay_service.ReplayServicer(store)))


def inference() -> list[Method]:
    """An inference server's, with one policy of two numbers and two actions."""
    policies = PulledPolicies(small_policy(), _no_other, unpack)
    forms = forms_of(SMALL_COLUMNS, Categorical(2))
    model = NumpyPolicy(SMALL, Categorical(2))
    batching = Batching(LocalInference(model, policies, forms, lambda: 0), 128)
    return methods(inference_service.method_handlers(InferenceServicer(batching)))


def names() -> list[Method]:
    """A registry's."""
    return methods(names_service.method_handlers(Leases()))


def _no_other(name: str) -> NoReturn:
    raise BridgeError(f"there is no policy {name!r}")


def memoire() -> list[Method]:
    """Those of Memoire's server."""
    number = np.zeros([], np.float32)
    server = ReplayMemoryServer((number, number, number, number), 16, 2)
    return methods(*server._handlers)  # noqa: SLF001 - without a port
