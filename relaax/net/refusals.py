"""Refuses a message, and names its sender: in the log, and in the answer."""

import logging
import re
from typing import Any, NoReturn, Protocol
from urllib.parse import unquote

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

_log = logging.getLogger(__name__)


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

    ``codecs`` read and write the messages with payloads. A refusal of a message names its sender.
    """
    coded = {codec.message_type: codec for codec in codecs}

    def handler(method: MethodDescriptor) -> grpc.RpcMethodHandler:
        request, reply = map(GetMessageClass, (method.input_type, method.output_type))
        serve = getattr(servicer, re.sub("(?<!^)(?=[A-Z])", "_", method.name).lower())
        decode = coded[request].decode if request in coded else request.FromString
        encode = coded[reply].encode if reply in coded else reply.SerializeToString

        def answer(data: bytes, context: grpc.ServicerContext) -> Any:
            try:
                message = decode(data)
            except (DecodeError, ValueError) as error:
                refuse(_log, context, error)  # gRPC would log a traceback, and not the sender
            return serve(message, context)

        return grpc.unary_unary_rpc_method_handler(answer, response_serializer=encode)

    methods = {method.name: handler(method) for method in service.methods}
    return grpc.method_handlers_generic_handler(service.full_name, methods)
