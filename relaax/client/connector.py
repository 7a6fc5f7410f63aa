"""Connects to an RLX server: waits for it, greets it, tries again, and gives up."""

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from relaax.address import Address
from relaax.client.failure import Failure
from relaax.client.server_connection import ServerConnection
from relaax.client.transport import TcpTransport, Transport
from relaax.errors import AccessDenied, ConfigurationError
from relaax.evaluation import Evaluation
from relaax.protocol import binary
from relaax.protocol.binary import Hello

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with jitter.

    The pause before attempt k + 1 is ``initial_s * factor ** (k - 1)``, at most ``max_s``, less a
    random part of up to ``jitter`` (0 to 1) of itself, so that many clients do not return at once.
    """

    initial_s: float = 0.5
    factor: float = 2.0
    max_s: float = 30.0
    jitter: float = 0.5
    attempts: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.initial_s <= self.max_s:
            raise ValueError(f"0 <= initial_s <= max_s, got {self.initial_s} and {self.max_s}")
        if self.factor < 1:
            raise ValueError(f"factor must be at least 1, is {self.factor}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be between 0 and 1, is {self.jitter}")
        if self.attempts < 1:
            raise ValueError(f"attempts must be at least 1, is {self.attempts}")

    def pauses(self, rng: random.Random) -> Iterator[float]:
        """Yield pauses in seconds, without end; the caller counts the attempts."""
        pause_s = self.initial_s
        while True:
            yield pause_s * (1 - self.jitter * rng.random())
            pause_s = min(pause_s * self.factor, self.max_s)


class RetryPolicy:
    """Counts connections that failed in a row, and pauses after each.

    A connection has failed when it could not be made, or was lost before it was of use: before an
    episode ended on it, and before it had lasted as long as the longest pause. After a useful
    connection the count starts anew, with a pause all the same: a server that keeps closing is not
    flooded.

    reconnect: how often to try again; None pauses after a loss, and does not try again. wait:
    called with each pause in seconds; when it returns true, no further attempt follows.
    """

    def __init__(self, reconnect: Backoff | None, wait: Callable[[float], object]) -> None:
        self._backoff = reconnect or Backoff()
        self._tries_again = reconnect is not None
        self.wait = wait
        self._rng = random.Random()  # noqa: S311 - it spreads clients in time, it hides nothing
        self.start_anew()

    def start_anew(self) -> None:
        """Forget the failures: a connection was of use."""
        self._attempts = 0
        self._began = time.monotonic()
        self._pauses: Iterator[float] = self._backoff.pauses(self._rng)

    def has_lasted(self, seconds: float) -> bool:
        """Return whether a connection of ``seconds`` was of use, although no episode ended."""
        return seconds >= self._backoff.max_s

    def allows_after(self, failure: Failure) -> bool:
        """Return whether another attempt may follow ``failure``."""
        return self._tries_again and not failure.is_final

    def pause_after_loss(self, failure: Failure) -> None:
        """Wait after the loss of a connection that was of use; raise ``failure`` to stop."""
        self.start_anew()
        if self.wait(next(self._backoff.pauses(self._rng))):
            raise failure

    def pause_after_attempt(self, failure: Failure) -> None:
        """Wait after an attempt that failed; raise Failure when the attempts are used up."""
        self._attempts += 1
        if self._attempts == 1:
            self._began = time.monotonic()
            _log.warning("waiting for the RLX server: %s", failure.message)
        if self._attempts >= self._backoff.attempts or self.wait(next(self._pauses)):
            seconds = time.monotonic() - self._began
            message = f"gave up after {self._attempts} attempts over {seconds:.1f} s"
            self.start_anew()
            message = f"{message}: {failure.message}"
            raise Failure(message, failure.code, gave_up=True) from failure


_Started = TypeVar("_Started")


#: Before a hello that was answered by a close is repeated.
_PAUSE_BEFORE_SECOND_HELLO_S = 0.1

#: How long a hello may go unanswered before that is logged.
LONG_S = 10.0

#: Possible causes of a close at the hello.
CLOSED_AT_HELLO = "the RLX server closed the connection at the hello: it has no room"
ANOTHER_PORT = "this is another port, for example the port of gRPC or --http-bind"


class OldServer(Exception):
    """The server closed at every hello and has never said welcome: it may know version 1 alone."""


@dataclass(frozen=True)
class Timeouts:
    """How long to wait, in seconds."""

    #: For one answer; None waits as long as the connection lasts.
    answer_s: float | None
    #: For a connection.
    connect_s: float


class Connector:
    """Makes the connections of one client, one after another."""

    def __init__(
        self, address: Address, transport: Transport, timeouts: Timeouts, retry: RetryPolicy
    ) -> None:
        self._address = address
        self._transport = transport
        self._timeouts = timeouts
        self._retry = retry
        self._connection: ServerConnection | None = None
        self._was_welcomed = False

    def connect(self) -> ServerConnection:
        """Return a new connection and close the previous one; Failure if none can be made."""
        self.close()
        try:
            connection = self._transport.connect(self._address, self._timeouts.connect_s)
        except (AccessDenied, ConfigurationError) as error:
            raise Failure(
                f"cannot connect to the RLX server at {self._address}: {error}",
                binary.ErrorCode.ACCESS,
            ) from error
        except OSError as error:
            raise Failure(
                f"cannot connect to the RLX server at {self._address}: {error}"
            ) from error
        self._connection = ServerConnection(connection, self._address, self._timeouts.answer_s)
        return self._connection

    def greet(self, hello: Hello) -> ServerConnection:
        """Return a new connection on which the server has answered ``hello``.

        A server may close without an answer because it has no room, or because it is too old.
        OldServer if it did so twice and has never answered a hello.
        """
        payload = binary.encode_hello(hello)
        connection = self._welcomed(payload, hello.evaluate)
        if connection is None and not self._was_welcomed:
            if self._retry.wait(_PAUSE_BEFORE_SECOND_HELLO_S):
                raise self._refused()
            connection = self._welcomed(payload, hello.evaluate)
            if connection is None:
                raise OldServer
        if connection is None:
            raise self._refused()
        self._was_welcomed = True
        return connection

    def with_retries(self, start: Callable[[], _Started]) -> _Started:
        """Return what ``start`` returns; call it again after a Failure, as often as allowed.

        A final Failure is raised at once, and again at the next start if the training ended, or its
        algorithm failed, in the middle of an episode. After any other loss there is a pause before
        the first attempt too. Mistakes in the middle of episodes count as failed attempts, however
        long the connection lasted, until an episode ends.
        """
        self._pause_after_loss()
        while True:
            try:
                return start()
            except Failure as failure:
                self.close()
                if not self._retry.allows_after(failure):
                    raise
                last = failure
            # Not while it is handled: Ctrl-C in the pause would show its traceback, too.
            self._retry.pause_after_attempt(last)

    def why_no_answer(self) -> str:
        """Return the possible reasons for OldServer, besides the server's age."""
        transport = self._transport
        if isinstance(transport, TcpTransport) and not transport.speaks_tls():
            return f"if it speaks TLS: RELAAX_TLS_CA; or {ANOTHER_PORT}"
        return f"or {ANOTHER_PORT}"

    def close(self) -> None:
        """Close the connection, if there is one, and forget how it was lost."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        connection.close()
        if connection.has_ended_an_episode:
            self._retry.start_anew()

    def _pause_after_loss(self) -> None:
        connection = self._connection
        if connection is None or connection.loss is None:
            return
        self.close()
        if connection.loss.ends_every_episode:
            raise connection.loss
        lasted = not connection.loss.is_refusal and self._retry.has_lasted(connection.age_s)
        if connection.has_ended_an_episode or lasted:
            self._retry.pause_after_loss(connection.loss)
        else:
            self._retry.pause_after_attempt(connection.loss)

    def _welcomed(self, hello: bytes, evaluation: Evaluation | None) -> ServerConnection | None:
        """Connect and say hello; return None if the server closes without a reason."""
        connection = self.connect()
        with self._logged_if_it_takes_long():
            return connection if connection.greet(hello, evaluation) else None

    @contextlib.contextmanager
    def _logged_if_it_takes_long(self) -> Iterator[None]:
        """Log why the wait for the answer to a hello may be long, if it is."""
        timer = threading.Timer(
            LONG_S,
            _log.warning,
            ("the RLX server at %s accepts connections, but has not answered a hello for %g s: it "
             "starts, is busy, or waits for its parameter server; or %s",
             self._address, LONG_S, ANOTHER_PORT),
        )  # fmt: skip
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _refused(self) -> Failure:
        return Failure(
            f"the RLX server at {self._address} closed the connection at the hello: it has no room"
        )
