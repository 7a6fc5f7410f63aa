"""The inference server's end of its gRPC service."""

import logging
from math import prod

import grpc

from relaax.address import Address
from relaax.algorithm_base.inference import Answering
from relaax.errors import BridgeError
from relaax.inference import inference_pb2
from relaax.inference.wire import (
    ANSWERS,
    QUESTIONS,
    SERVICE,
    answer_message,
    description_of,
    forms_digest,
    question_of,
)
from relaax.net import channel_options
from relaax.net.guarded_server import GuardedServer
from relaax.net.payloads import WithPayload
from relaax.net.refusals import handlers_of, refuse

_log = logging.getLogger(__name__)

#: Each question that waits holds a thread: so many processes may ask at once.
THREADS = 256

#: A question may be of so many environments, with 8 bytes for each number.
MOST_ENVIRONMENTS, _NUMBER_BYTES = 1024, 8


class InferenceServicer:
    """Turns gRPC messages into questions to ``answering``, which many threads ask, and back."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._digest = forms_digest(answering.forms())

    def describe(
        self, request: inference_pb2.Nothing, context: grpc.ServicerContext
    ) -> inference_pb2.Description:
        """Return the forms of arrays."""
        return description_of(self._answering.forms())

    def choose(
        self, request: WithPayload[inference_pb2.Question], context: grpc.ServicerContext
    ) -> WithPayload[inference_pb2.Answer]:
        """Choose actions."""
        if request.fields.forms != self._digest:
            context.abort(
                grpc.StatusCode.FAILED_PRECONDITION, "it has another configuration than the caller"
            )
        try:
            return answer_message(self._answering.choose(question_of(request)))
        except ValueError as error:
            refuse(_log, context, error)
        except BridgeError as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        raise AssertionError("abort raises")


def method_handlers(servicer: InferenceServicer) -> grpc.GenericRpcHandler:
    """Return the handlers of a gRPC server."""
    return handlers_of(SERVICE, servicer, QUESTIONS, ANSWERS)


class InferencePort:
    """Serves at an address; OSError if the port is taken."""

    def __init__(self, address: Address, answering: Answering) -> None:
        numbers = sum(prod(form.shape) for form in answering.forms().values())
        most_bytes = channel_options.most_bytes_of(MOST_ENVIRONMENTS * _NUMBER_BYTES * numbers)
        handlers = method_handlers(InferenceServicer(answering))
        self._server = GuardedServer(THREADS, [handlers], most_bytes=most_bytes)
        self._server.start(str(address))
        #: Where it listens, also where the system has chosen the port.
        self.address = Address(address.host, self._server.port)

    def close(self, grace_s: float = 1.0) -> None:
        """Refuse new calls, and close when the running ones are done, or after ``grace_s``."""
        self._server.stop(grace_s).wait()
