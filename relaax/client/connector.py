"""Connects to an RLX server: waits for it, greets it, tries again, and gives up."""

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from relaax.address import Address
from relaax.client.failure import Failure
from relaax.client.server_connection import ANOTHER_PORT, ServerConnection
from relaax.client.transport import Transport
from relaax.errors import AccessDenied, ConfigurationError
from relaax.processes.run_variables import run_of_this_process
from relaax.protocol import MessageConnection, binary, json
from relaax.protocol.binary import Hello
from relaax.spaces import Space

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
            many = f"{self._attempts} attempts over {seconds:.1f} s"
            message = f"gave up after {'one attempt' if self._attempts == 1 else many}"
            self.start_anew()
            message = f"{message}: {failure.message}"
            raise Failure(message, failure.code, gave_up=True) from failure


_Started = TypeVar("_Started")


#: How long a hello may go unanswered, and a server not listen, before that is logged.
LONG_S = 10.0

#: How long a server of the same ``relaax-train`` may take to its start, and how often it is looked.
STARTS_WITHIN_S = 120.0
_LOOKS_EVERY_S = 0.2


class Connector:
    """Makes the connections of one client, one after another.

    answer_s, connect_s: how long to wait for an answer, and for a connection; ``answer_s`` None
    waits as long as the connection lasts. hello: begins each connection of version 2; None for
    version 1.
    """

    def __init__(
        self,
        address: Address,
        transport: Transport,
        answer_s: float | None,
        connect_s: float,
        retry: RetryPolicy,
        hello: Hello | None,
    ) -> None:
        self._address = address
        self._transport = transport
        self._answer_s, self._connect_s = answer_s, connect_s
        self._retry = retry
        self._hello = hello
        self._has_connected = False
        #: The last connection: open, or lost.
        self.last: ServerConnection | None = None

    @property
    def asked(self) -> Space | None:
        """The observation space of the server's last welcome; None if it has none."""
        return None if self.last is None else self.last.asked

    def open(self, seen: Space | None) -> ServerConnection:
        """Return the open connection, or a new one; Failure if none can be made.

        A new one is greeted with the announced observation space, or the one ``seen``.
        """
        if self.last is not None and self.last.is_open:
            return self.last
        connection = self._connected()
        if self._hello is not None:
            hello = self._hello
            space = hello.observation_space or seen
            with self._logged_if_it_takes_long():
                connection.greet(replace(hello, observation_space=space))
        return connection

    def with_retries(self, start: Callable[[], _Started]) -> _Started:
        """Return the result of ``start``; call it again after a Failure, as often as allowed.

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

    def close(self) -> None:
        """Close the connection, if there is one, and forget how it was lost."""
        connection, self.last = self.last, None
        if connection is None:
            return
        connection.close()
        if connection.has_ended_an_episode:
            self._retry.start_anew()

    def _pause_after_loss(self) -> None:
        connection = self.last
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

    def _connected(self) -> ServerConnection:
        self.close()
        try:
            connection = self._opened()
        except (AccessDenied, ConfigurationError) as error:
            raise Failure(
                f"cannot connect to the RLX server at {self._address}: {error}",
                binary.ErrorCode.ACCESS,
            ) from error
        except OSError as error:
            raise Failure(
                f"cannot connect to the RLX server at {self._address}: {error}"
            ) from error
        self._has_connected = True
        hello = self._hello
        codec = json.ClientCodec() if hello is None else binary.ClientCodec(hello.environments)
        self.last = ServerConnection(connection, self._address, codec, self._answer_s)
        return self.last

    def _opened(self) -> MessageConnection:
        """Return a transport's connection.

        ``relaax-train`` starts servers and environments at once: until there was one, a server that
        does not listen yet is waited for.
        """
        began, is_said = time.monotonic(), False
        while True:
            try:
                return self._transport.connect(self._address, self._connect_s)
            except ConnectionRefusedError as error:
                seconds = time.monotonic() - began
                is_started = self._has_connected or run_of_this_process() is None
                if is_started or seconds > STARTS_WITHIN_S or self._retry.wait(_LOOKS_EVERY_S):
                    raise
                if seconds > LONG_S and not is_said:
                    _log.warning("waiting for the RLX server at %s: %s", self._address, error)
                    is_said = True

    @contextlib.contextmanager
    def _logged_if_it_takes_long(self) -> Iterator[None]:
        """Log why the wait for the answer to a hello may be long, if it is."""
        timer = threading.Timer(
            LONG_S,
            _log.warning,
            ("the RLX server at %s accepts connections, but has not answered a hello for %g s: it "
             "starts, is busy, or waits for its parameter server; or this is %s",
             self._address, LONG_S, ANOTHER_PORT),
        )  # fmt: skip
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
