"""Refuses a message, and names its sender: in the log, and in the answer."""

import logging
from collections.abc import Callable
from typing import NoReturn, TypeVar
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError

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
