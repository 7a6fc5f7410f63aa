"""One connection to an RLX server: steps, answers, and how it was lost."""

import contextlib
import time
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy.typing as npt

from relaax.address import Address
from relaax.client.failure import Failure
from relaax.errors import AccessDenied, ProtocolError
from relaax.protocol import MessageConnection, binary, json
from relaax.protocol.binary import Answers, Hello, Metric
from relaax.spaces import Space
from relaax.steps import ENDED, EXECUTED, Steps

Array = npt.NDArray[Any]
Codec: TypeAlias = binary.ClientCodec | json.ClientCodec
_Reply = TypeVar("_Reply")

ANOTHER_PORT = "another port, for example the port of gRPC or --http-bind"


class ServerConnection:
    """A connection that a transport has opened, until it is lost or closed.

    codec: of the version of the protocol that it speaks. answer_s: how long to wait for one answer;
    None waits as long as the connection lasts.
    """

    def __init__(
        self, connection: MessageConnection, address: Address, codec: Codec, answer_s: float | None
    ) -> None:
        self._connection = connection
        self._address = address
        self._server = f"the RLX server at {address}"
        self._codec = codec
        self._answer_s = answer_s
        self._opened_at = time.monotonic()
        self._was_understood = False
        self._takes_executed_actions = True
        #: Whether it is open, as far as is known.
        self.is_open = True
        #: The observation space of the server's welcome; None if it has none.
        self.asked: Space | None = None
        #: Whether the server has answered the end of an episode.
        self.has_ended_an_episode = False
        #: The exception of the message at which the connection was lost.
        self.loss: Failure | None = None

    @property
    def age_s(self) -> float:
        """How long ago it was opened, in seconds."""
        return time.monotonic() - self._opened_at

    def greet(self, hello: Hello) -> None:
        """Say hello; Failure, and a closed connection, for any answer but a welcome.

        Failure also for a server that does not promise the evaluation, or the agents, of the hello.
        """
        payload = binary.encode_hello(hello)
        try:
            welcome = self._decoded(self._reply_to(payload), binary.decode_welcome)
        except _ClosedWithoutReason as closed:
            self.close()
            raise Failure(
                f"{self._server} closed the connection at the hello: it has no room; or it knows "
                "version 1 alone (Client(..., protocol=1)), it speaks TLS and this client does not "
                f"(RELAAX_TLS_CA), or this is {ANOTHER_PORT}"
            ) from closed
        except Failure:
            self.close()
            raise
        if hello.evaluate is not None and welcome.evaluate is not hello.evaluate:
            self.close()
            raise Failure(
                f"{self._server} does not know of evaluations, and would learn from this one",
                binary.ErrorCode.MISMATCH,
            )
        if hello.agents and not welcome.agents:
            self.close()
            raise Failure(
                f"{self._server} does not know of agents with names, and would take each for an "
                "environment of its own",
                binary.ErrorCode.MISMATCH,
            )
        self._takes_executed_actions = welcome.executed_actions
        self.asked = welcome.observation_space

    def step_all(self, rewards: Array, observations: Any) -> Array:
        """Report a step of every environment, in which no episode ends; return the actions.

        rewards: float64 [N]; observations: [N, ...], or arrays of that shape by name; checked.
        """
        return self._ask(self._codec.encode_all(rewards, observations)).actions

    def ask(self, steps: Steps) -> Answers:
        """Report ``steps`` of any kind, which must have been checked, and return the answers.

        Failure when the connection is lost, and for executed actions if the server does not take
        them; the connection stays open then.
        """
        if not self._takes_executed_actions and (steps.flags & EXECUTED).any():
            raise Failure(
                f"{self._server} takes no executed actions: it would learn from those that it "
                "chose; a newer version takes them",
                binary.ErrorCode.MISMATCH,
            )
        answers = self._ask(self._codec.encode(steps))
        if (steps.flags & ENDED).any():
            self.has_ended_an_episode = True
        return answers

    def metric(self, name: str, y: float, x: float | None) -> None:
        """Report a number; it is not answered, and the next ``ask`` notices a loss."""
        if self.is_open:
            self._tell(self._codec.encode_metric(Metric(name, y, x)))

    def close(self) -> None:
        """Close it; closing twice is allowed."""
        self.is_open = False
        self._connection.close()

    def _tell(self, payload: bytes) -> None:
        try:
            self._connection.send(payload)
        except TimeoutError:
            self.close()  # a part of the message may have been sent
        except OSError:
            return  # the server may have said why it closed: the next ``ask`` reads it

    def _ask(self, payload: bytes) -> Answers:
        try:
            return self._decoded(self._reply_to(payload), self._codec.decode)
        except Failure as failure:
            self.close()
            self.loss = Failure(failure.message, failure.code)
            raise self.loss from failure.__cause__

    def _reply_to(self, payload: bytes) -> bytes:
        """Send a message and return the answer."""
        try:
            reply = self._exchanged(payload)
        except ConnectionError as error:
            raise _ClosedWithoutReason(f"{self._lost(error)}{self._hint()}") from error
        except OSError as error:
            raise Failure(self._lost(error)) from error
        except AccessDenied as error:
            message = f"{self._server} closed the connection: {error}"
            raise Failure(message, binary.ErrorCode.ACCESS) from error
        except ProtocolError as error:
            raise self._broken(error) from error
        if reply is None:
            raise _ClosedWithoutReason(
                f"{self._server} closed the connection and gave no reason; its log may say why"
                f"{self._hint()}"
            )
        return reply

    def _exchanged(self, payload: bytes) -> bytes | None:
        with contextlib.suppress(ConnectionError):
            # The server may have sent its reason before it closed: receive it.
            self._connection.send(payload)
        return self._connection.receive(self._answer_s)

    def _decoded(self, payload: bytes, decode: Callable[[bytes], _Reply]) -> _Reply:
        try:
            reply = decode(payload)
        except binary.Error as error:
            message = f"{self._server} closed the connection: {error}"
            raise Failure(message, error.code) from error
        except ProtocolError as error:
            raise self._broken(error) from error
        self._was_understood = True
        return reply

    def _lost(self, error: OSError) -> str:
        return f"lost {self._server}: {error}"

    def _broken(self, error: ProtocolError) -> Failure:
        return Failure(f"{self._server} broke the protocol: {error}{self._hint()}")

    def _hint(self) -> str:
        """Return possible causes, as long as no answer of the server was understood."""
        if self._was_understood:
            return ""
        return f"; is {self._address} the port of an RLX server, and not {ANOTHER_PORT}?"


def opened(connection: ServerConnection | None) -> ServerConnection:
    """Return an open connection; Failure without one."""
    if connection is None or not connection.is_open:
        raise Failure("there is no connection; start an episode with init")
    return connection


class _ClosedWithoutReason(Failure):
    """The server closed the connection, or it broke, and no reason came."""
