"""One connection to an RLX server: questions, answers, and how it was lost; steps on it."""

import contextlib
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy.typing as npt

from relaax.address import Address
from relaax.client.failure import Failure, not_connected
from relaax.errors import AccessDenied, ProtocolError
from relaax.evaluation import Evaluation
from relaax.observations import Observations
from relaax.protocol import MessageConnection, binary
from relaax.protocol.binary import Answers, ClientCodec, Metric
from relaax.spaces import Space
from relaax.steps import ENDED, EXECUTED, Steps

Array = npt.NDArray[Any]
_Reply = TypeVar("_Reply")


class ServerConnection:
    """A connection that a transport has opened, until it is lost or closed.

    answer_s: how long to wait for one answer; None waits as long as the connection lasts.
    """

    def __init__(
        self, connection: MessageConnection, address: Address, answer_s: float | None
    ) -> None:
        self._connection = connection
        self._address = address
        self._server = f"the RLX server at {address}"
        self._answer_s = answer_s
        self._opened_at = time.monotonic()
        self._was_understood = False
        #: Whether it is open, as far as is known.
        self.is_open = True
        #: The observation space of the server's welcome; None if it has none.
        self.asked: Space | None = None
        #: Whether the server has answered the end of an episode.
        self.has_ended_an_episode = False
        #: Whether the server has said that reports may bring executed actions.
        self.takes_executed_actions = False
        #: The exception of ``ask`` at the loss of the connection.
        self.loss: Failure | None = None

    @property
    def age_s(self) -> float:
        """How long ago it was opened, in seconds."""
        return time.monotonic() - self._opened_at

    def greet(self, hello: bytes, evaluation: Evaluation | None = None) -> bool:
        """Say hello; return True for a welcome, False if the server closes without a reason.

        Failure for any other answer, and for a server that does not promise the ``evaluation`` of
        the hello. The connection stays open only after a welcome.
        """
        try:
            welcome = self._decoded(self._reply_to(hello), binary.decode_welcome)
            self.takes_executed_actions = welcome.executed_actions
            if evaluation is not None and welcome.evaluate is not evaluation:
                raise Failure(
                    f"{self._server} does not know of evaluations, and would learn from this one",
                    binary.ErrorCode.MISMATCH,
                )
            self.asked = welcome.observation_space
        except _ClosedWithoutAWord:
            self.close()
            return False
        except Failure:
            self.close()
            raise
        return True

    def ask(self, payload: bytes, decode: Callable[[bytes], _Reply]) -> _Reply:
        """Send a message and return the answer, decoded; Failure when the connection is lost."""
        if not self.is_open:
            raise not_connected()
        try:
            return self._decoded(self._reply_to(payload), decode)
        except Failure as failure:
            self.close()
            self.loss = Failure(failure.message, failure.code)
            raise self.loss from failure.__cause__

    def require_executed_actions(self) -> None:
        """Raise Failure where the server is older than reports of executed actions."""
        if not self.takes_executed_actions:
            raise Failure(
                f"{self._server} takes no executed actions: it would learn from those that it "
                "chose; a newer version takes them",
                binary.ErrorCode.MISMATCH,
            )

    def tell(self, payload: bytes) -> None:
        """Send a message that is not answered; the next ``ask`` finds out whether it arrived."""
        if not self.is_open:
            return
        try:
            self._connection.send(payload)
        except TimeoutError:
            self.close()  # a part of the message may have been sent
        except OSError:
            return  # the server may have said why it closed: the next ``ask`` reads it

    def close(self) -> None:
        """Close it; closing twice is allowed."""
        self.is_open = False
        self._connection.close()

    def _reply_to(self, payload: bytes) -> bytes:
        """Send a message and return the answer."""
        try:
            reply = self._exchanged(payload)
        except ConnectionError as error:
            raise _ClosedWithoutAWord(f"{self._lost(error)}{self._hint()}") from error
        except OSError as error:
            raise Failure(self._lost(error)) from error
        except AccessDenied as error:
            message = f"{self._server} closed the connection: {error}"
            raise Failure(message, binary.ErrorCode.ACCESS) from error
        except ProtocolError as error:
            raise self._broken(error) from error
        if reply is None:
            raise _ClosedWithoutAWord(
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
        return (
            f"; is {self._address} the port of an RLX server, and not another one, for example the "
            "port of gRPC or --http-bind?"
        )


class StepsSession:
    """Version 2 on a connection: sends steps, which must have been checked; returns the answers.

    Failure, and no connection any more, when the server does not answer, or answers anything else.
    """

    def __init__(self, connection: ServerConnection, environments: int) -> None:
        self._connection = connection
        self._codec = ClientCodec(environments)

    @property
    def is_open(self) -> bool:
        """Whether its connection is open, as far as is known."""
        return self._connection.is_open

    @property
    def asked(self) -> Space | None:
        """The observation space of the server's welcome; None if it has none."""
        return self._connection.asked

    def step_all(self, rewards: Array, observations: Observations) -> Array:
        """Report a step of every environment, in which no episode ends; return the actions.

        rewards: float64 [N]; observations: [N, ...], or arrays of that shape by name.
        """
        payload = self._codec.encode_all(rewards, observations)
        return self._connection.ask(payload, self._codec.decode).actions

    def ask(self, steps: Steps) -> Answers:
        """Report ``steps`` of any kind and return the answers.

        Failure also for executed actions if the server does not take them; the connection stays
        open.
        """
        if (steps.flags & EXECUTED).any():
            self._connection.require_executed_actions()
        answers = self._connection.ask(self._codec.encode(steps), self._codec.decode)
        if (steps.flags & ENDED).any():
            self._connection.has_ended_an_episode = True
        return answers

    def metric(self, name: str, y: float, x: float | None) -> None:
        """Report a number; it is not answered."""
        self._connection.tell(binary.encode_metric(Metric(name, float(y), x)))


class _ClosedWithoutAWord(Failure):
    """The server closed the connection, or it broke, and no reason came."""
