"""The line to an RLX server: connecting, with patience, and exchanging messages."""

import logging
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from relaax.client.backoff import Backoff
from relaax.client.failure import Failure
from relaax.common.address import Address
from relaax.common.errors import ProtocolError
from relaax.common.protocol import FrameConnection, binary
from relaax.common.protocol.binary import Hello, Welcome

_Reply = TypeVar("_Reply")

_log = logging.getLogger(__name__)


class OldServer(Exception):
    """The server closed instead of answering a hello: it speaks version 1, or has no room."""


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
        self._rng = random.Random()  # noqa: S311 - it spreads clients in time, it hides nothing
        self._connection: FrameConnection | None = None
        self._final: Failure | None = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._connection is not None

    def connect(self) -> None:
        """Connect, without a word."""
        try:
            address = (self._address.host, self._address.port)
            sock = socket.create_connection(address, self._patience.connect_s)
            self._connection = FrameConnection(sock, idle_timeout_s=self._patience.answer_s)
        except OSError as error:
            raise Failure(
                f"cannot connect to the RLX server at {self._address}: {error}"
            ) from error

    def greet(self, hello: Hello) -> Welcome:
        """Connect and say hello; OldServer when the server closes instead of answering."""
        self.connect()
        try:
            payload = self._exchanged(binary.encode_hello(hello))
        except TimeoutError as error:
            self.close()
            raise Failure(f"the RLX server at {self._address} did not answer: {error}") from error
        except OSError as error:
            self.close()
            raise OldServer from error
        if payload is None:
            self.close()
            raise OldServer
        return self._decoded(payload, binary.decode_welcome)

    def ask(self, payload: bytes, decode: Callable[[bytes], _Reply]) -> _Reply:
        """Send a message and return the answer, decoded."""
        if self._connection is None:
            raise Failure("there is no connection; start an episode with init")
        try:
            reply = self._exchanged(payload)
        except OSError as error:
            self.close()
            raise Failure(f"lost the RLX server at {self._address}: {error}") from error
        except ProtocolError as error:
            raise self._broken(error) from error
        if reply is None:
            self.close()
            raise Failure(f"the RLX server at {self._address} closed the connection")
        return self._decoded(reply, decode)

    def tell(self, payload: bytes) -> None:
        """Send a message that is not answered. Whether it arrived, the next answer tells."""
        if self._connection is None:
            return
        try:
            self._connection.send(payload)
        except OSError:
            self.close()

    def patiently(self, attempt: Callable[[], _Reply]) -> _Reply:
        """Return what ``attempt`` returns; try it again after a Failure, as often as allowed.

        A Failure that is final is raised at once; one that came in the middle of an episode, by
        the next attempt to start another.
        """
        final, self._final = self._final, None
        if final is not None:
            raise final
        reconnect = self._patience.reconnect
        if reconnect is None:
            return attempt()
        began = time.monotonic()
        delays = reconnect.delays(self._rng)
        attempts = 0
        while True:
            attempts += 1
            try:
                return attempt()
            except Failure as failure:
                if failure.is_final:
                    self._final = None
                    raise
                if attempts == 1:
                    _log.warning("waiting for the RLX server: %s", failure.message)
                delay_s = next(delays, None)
                if delay_s is None or self._patience.wait(delay_s):
                    seconds = time.monotonic() - began
                    raise Failure(
                        f"gave up after {attempts} attempts over {seconds:.1f} s: "
                        f"{failure.message}",
                        failure.code,
                    ) from failure

    def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _exchanged(self, payload: bytes) -> bytes | None:
        connection = self._connection
        if connection is None:
            raise Failure("there is no connection; start an episode with init")
        try:
            connection.send(payload)
        except OSError:
            # The server may have said why before it closed.
            reply = connection.receive()
            if reply is None:
                raise
            return reply
        return connection.receive()

    def _decoded(self, payload: bytes, decode: Callable[[bytes], _Reply]) -> _Reply:
        try:
            return decode(payload)
        except binary.Error as error:
            self.close()
            failure = Failure(
                f"the RLX server at {self._address} closed the connection: {error}", error.code
            )
            if failure.is_final:
                self._final = failure
            raise failure from error
        except ProtocolError as error:
            raise self._broken(error) from error

    def _broken(self, error: ProtocolError) -> Failure:
        self.close()
        return Failure(f"the RLX server at {self._address} broke the protocol: {error}")
