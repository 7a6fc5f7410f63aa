"""Refuses a message, and names its sender: in the log, and in the answer."""

import logging
import re
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar
from urllib.parse import unquote

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

_log = logging.getLogger(__name__)

Request = TypeVar("Request")
Reply = TypeVar("Reply")


def address_of(context: grpc.ServicerContext) -> str:
    """Return where a call comes from: ``host:port``, or the path of a socket."""
    kind, _, address = unquote(context.peer()).partition(":")
    return address if kind in ("ipv4", "ipv6") and address else f"{kind}:{address}"


def refuse(
    log: logging.Logger,
    context: grpc.ServicerContext,
    error: Exception,
    code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT,
) -> NoReturn:
    """Log that a call is refused because of ``error``, and end it."""
    caller = address_of(context)
    log.warning("a call from %s was refused: %s", caller, error)
    context.abort(code, f"{error} (sent from {caller})")
    raise AssertionError("abort raises")


def unary(
    serve: Callable[[Request, grpc.ServicerContext], Reply],
    decode: Callable[[bytes], Request],
    encode: Callable[[Reply], bytes],
) -> grpc.RpcMethodHandler:
    """Return the handler of calls to ``serve``; refusals of ``decode`` name the sender.

    gRPC itself would log a traceback, and not the sender.
    """

    def answer(data: bytes, context: grpc.ServicerContext) -> Reply:
        try:
            request = decode(data)
        except (DecodeError, ValueError) as error:
            refuse(_log, context, error)
        return serve(request, context)

    return grpc.unary_unary_rpc_method_handler(answer, response_serializer=encode)


class Codec(Protocol):
    """Reads and writes the messages of one type."""

    message_type: type[Any]

    def encode(self, message: Any) -> bytes:
        """Return the bytes of a message."""

    def decode(self, data: bytes) -> Any:
        """Return the message; ValueError or DecodeError for bytes without one."""


def handlers_of(
    service: ServiceDescriptor, servicer: object, *codecs: Codec
) -> grpc.GenericRpcHandler:
    """Return the handlers of a service: method ``GetInfo`` is ``get_info`` of ``servicer``.

    ``codecs`` read and write the messages with payloads.
    """
    coded = {codec.message_type: codec for codec in codecs}

    def handler(method: MethodDescriptor) -> grpc.RpcMethodHandler:
        request, reply = map(GetMessageClass, (method.input_type, method.output_type))
        return unary(
            getattr(servicer, re.sub("(?<!^)(?=[A-Z])", "_", method.name).lower()),
            coded[request].decode if request in coded else request.FromString,
            coded[reply].encode if reply in coded else reply.SerializeToString,
        )

    methods = {method.name: handler(method) for method in service.methods}
    return grpc.method_handlers_generic_handler(service.full_name, methods)
