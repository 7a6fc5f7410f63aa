"""The line to an RLX server: connecting, with patience, and exchanging messages."""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from relaax.address import Address
from relaax.client.backoff import Backoff
from relaax.client.failure import Failure
from relaax.client.persistence import Persistence
from relaax.errors import ProtocolError
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode, Hello, Welcome

_Reply = TypeVar("_Reply")

_log = logging.getLogger(__name__)

#: Before a hello that was answered by a close is repeated.
_PAUSE_BEFORE_SECOND_HELLO_S = 0.1

#: How long a hello may go unanswered before that is said.
_LONG_S = 10.0


class OldServer(Exception):
    """A server that never said welcome closed at every hello: it seems to know version 1 alone."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for what."""

    #: For one answer; None waits as long as the server's machine is there.
    answer_s: float | None
    connect_s: float
    #: How often to try again; None does not.
    reconnect: Backoff | None
    #: Called with each pause in seconds; when it returns true, the trying ends.
    wait: Callable[[float], object]


class Line:
    """A connection that can be made again. Every method raises ``Failure`` when it is lost."""

    def __init__(self, rlx_server_url: str, patience: Patience) -> None:
        self._address = Address.parse(rlx_server_url)
        self._patience = patience
        self._persistence = Persistence(patience.reconnect or Backoff(), patience.wait)
        self._connection: FrameConnection | None = None
        self._was_welcomed = False
        #: How the connection was lost in the middle of an episode, until the next is begun.
        self._loss: Failure | None = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._connection is not None

    def connect(self) -> FrameConnection:
        """Connect, without a word; a connection that there is gets closed."""
        self.close()
        try:
            address = (self._address.host, self._address.port)
            sock = socket.create_connection(address, self._patience.connect_s)
            connection = FrameConnection(sock)
        except OSError as error:
            raise Failure(
                f"cannot connect to the RLX server at {self._address}: {error}"
            ) from error
        self._persistence.connected()
        self._connection = connection
        return connection

    def greet(self, hello: Hello) -> Welcome:
        """Connect and say hello.

        A server may close instead of answering because it has no room, or because it is an old
        one. OldServer is raised for one that did so twice and has never answered a hello.
        """
        payload = binary.encode_hello(hello)
        welcome = self._welcome(payload)
        if welcome is None and not self._was_welcomed:
            if self._patience.wait(_PAUSE_BEFORE_SECOND_HELLO_S):
                raise self._refused()
            welcome = self._welcome(payload)
            if welcome is None:
                raise OldServer
        if welcome is None:
            raise self._refused()
        self._was_welcomed = True
        return welcome

    def ask(self, payload: bytes, decode: Callable[[bytes], _Reply]) -> _Reply:
        """Send a message and return the answer, decoded."""
        if self._connection is None:
            raise Failure("there is no connection; start an episode with init")
        try:
            return self._decoded(self._exchanged(self._connection, payload), decode)
        except Failure as failure:
            self.close()
            self._loss = Failure(failure.message, failure.code)
            raise self._loss from failure.__cause__

    def tell(self, payload: bytes) -> None:
        """Send a message that is not answered. Whether it arrived, the next answer tells."""
        if self._connection is None:
            return
        try:
            self._connection.send(payload)
        except TimeoutError:
            self.close()  # a part of the message may have gone out
        except OSError:
            return  # the server may have said why it closed: the next ``ask`` reads it

    def patiently(self, attempt: Callable[[], _Reply]) -> _Reply:
        """Return what ``attempt`` returns; try it again after a Failure, as often as allowed.

        A Failure that is final is raised at once. Where the training ended in the middle of an
        episode, starting another raises that again. After any other loss there is a pause before
        the first attempt too.
        """
        loss, self._loss = self._loss, None
        if loss is not None:
            if loss.code == ErrorCode.TRAINING_IS_OVER:
                raise loss
            if not loss.is_final:
                self._persistence.pause_after_loss(loss)
        while True:
            try:
                return attempt()
            except Failure as failure:
                self._loss = None
                if failure.is_final or self._patience.reconnect is None:
                    raise
                self._persistence.pause_after_attempt(failure)

    def episode_ended(self) -> None:
        """Take note that the server has answered the end of an episode."""
        self._persistence.episode_ended()

    def close(self) -> None:
        """Close the connection, if there is one, and forget how one was lost."""
        self._loss = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _welcome(self, hello: bytes) -> Welcome | None:
        """Connect and say hello; return None when the server closes without a word."""
        connection = self.connect()
        try:
            with self._impatience():
                reply = self._exchanged(connection, hello)
            return self._decoded(reply, binary.decode_welcome)
        except _ClosedWithoutAWord:
            self.close()
            return None
        except Failure:
            self.close()
            raise

    @contextlib.contextmanager
    def _impatience(self) -> Iterator[None]:
        """Say so when what happens inside takes long: nobody should look at a silent terminal."""
        timer = threading.Timer(
            _LONG_S,
            _log.warning,
            ("the RLX server at %s is there, but for %g s it has not answered a hello: it starts, "
             "has much to do, or waits for its parameter server", self._address, _LONG_S),
        )  # fmt: skip
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _exchanged(self, connection: FrameConnection, payload: bytes) -> bytes:
        """Send a message and return the answer."""
        try:
            with contextlib.suppress(ConnectionError):
                # The server may have said why before it closed: whatever there is, is received.
                connection.send(payload)
            reply = connection.receive(self._patience.answer_s)
        except ConnectionError as error:
            raise _ClosedWithoutAWord(self._lost(error)) from error
        except OSError as error:
            raise Failure(self._lost(error)) from error
        except ProtocolError as error:
            raise self._broken(error) from error
        if reply is None:
            raise _ClosedWithoutAWord(
                f"the RLX server at {self._address} closed the connection without a word; "
                "its log may say why"
            )
        return reply

    def _decoded(self, payload: bytes, decode: Callable[[bytes], _Reply]) -> _Reply:
        try:
            return decode(payload)
        except binary.Error as error:
            raise Failure(
                f"the RLX server at {self._address} closed the connection: {error}", error.code
            ) from error
        except ProtocolError as error:
            raise self._broken(error) from error

    def _refused(self) -> Failure:
        return Failure(
            f"the RLX server at {self._address} closed the connection at the hello: it has no room"
        )

    def _lost(self, error: OSError) -> str:
        return f"lost the RLX server at {self._address}: {error}"

    def _broken(self, error: ProtocolError) -> Failure:
        return Failure(f"the RLX server at {self._address} broke the protocol: {error}")


class _ClosedWithoutAWord(Failure):
    """The server closed the connection, or it broke, and no reason came."""
