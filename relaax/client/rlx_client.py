"""The RLX client: how an environment asks for actions and reports rewards.

    client = Client("localhost:7001")
    while True:
        action = client.init(environment.reset())
        while True:
            reward, state, is_over = environment.step(action)
            if is_over:
                score = client.reset(reward)
                break
            action = client.send(reward, state)

A state is a number, a list or a numpy array; an action is an int or a numpy array.
"""

import random
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from relaax.client.backoff import Backoff
from relaax.common.address import Address
from relaax.common.errors import ProtocolError
from relaax.common.metrics import Metrics
from relaax.common.protocol import (
    Act,
    FrameConnection,
    RewardAndAct,
    RewardAndReset,
    ScalarMetric,
    decode_action,
    decode_score,
    encode_request,
)

_Reply = TypeVar("_Reply")


class Failure(Exception):
    """The server is away, closed the connection or answered nonsense; ``message`` says which.

    The connection is closed and the server's part of the episode is lost: reset the environment
    and call ``init``, which connects again.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Client:
    """A connection to an RLX server, made by the first ``init``.

    ``rlx_server_url`` is ``HOST:PORT`` or ``[IPV6]:PORT``, else ``ConfigurationError`` is raised.
    ``timeout_s`` bounds the wait for one answer; without it the client waits as long as the
    server's machine is there. With ``reconnect``, ``init`` keeps trying; ``wait`` is called with
    each pause in seconds, and when it returns true (as ``threading.Event.wait`` does once the
    event is set) the trying ends. Every method raises ``Failure`` when the server cannot answer,
    and ``ValueError`` or ``TypeError`` for a state or a reward that cannot be sent.
    """

    def __init__(
        self,
        rlx_server_url: str,
        *,
        timeout_s: float | None = None,
        connect_timeout_s: float = 10.0,
        reconnect: Backoff | None = None,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._address = Address.parse(rlx_server_url)
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._reconnect = reconnect
        self._wait = wait
        self._rng = random.Random()  # noqa: S311 - it spreads clients in time, it hides nothing
        self._connection: FrameConnection | None = None
        self._episode_return = 0.0

    def init(self, state: Any) -> Any:
        """Start an episode with its first state and return the first action.

        An episode that is still running counts as cut off. With ``reconnect``, a server that
        cannot be reached, or that closes instead of answering, is tried again until the attempts
        are used up in a row.
        """
        payload = encode_request(Act(state))
        if self._reconnect is None:
            return self._start(payload)
        return self._start_patiently(payload, self._reconnect)

    def send(self, reward: float | None, state: Any) -> Any:
        """Report the reward of the previous action and the state now; return the next action.

        Without a reward (``None``) the state is the first of an episode, as with ``init``; the
        difference is that ``send`` never connects.
        """
        if reward is None:
            action = self._exchange(encode_request(Act(state)), decode_action)
            self._episode_return = 0.0
            return action
        action = self._exchange(encode_request(RewardAndAct(reward, state)), decode_action)
        self._episode_return += float(reward)
        return action

    def reset(self, reward: float) -> float:
        """Report the last reward of an episode that is over; return the sum of its rewards.

        The sum is the server's. The next episode starts with ``init``.
        """
        score = self._exchange(encode_request(RewardAndReset(reward)), decode_score)
        self._episode_return = 0.0
        return score

    def truncate(self, reward: float, state: Any) -> float:
        """End an episode that was cut off, by a time limit say, although its task was not over.

        ``state`` is its last one. Returns the sum of the episode's rewards, counted here: RLX
        version 1 has no word for this, the server notices when ``init`` follows.
        """
        self.send(reward, state)
        episode_return, self._episode_return = self._episode_return, 0.0
        return episode_return

    def metrics(self) -> Metrics:
        """Return where the environment's scalars go: to the server, with its other metrics.

        Storing one never raises for a lost connection; the next exchange finds that out.
        """
        return _ClientMetrics(self)

    def disconnect(self) -> None:
        """Close the connection, if there is one. A later ``init`` connects again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.disconnect()

    def _start(self, payload: bytes) -> Any:
        self._connect()
        action = self._exchange(payload, decode_action)
        self._episode_return = 0.0
        return action

    def _start_patiently(self, payload: bytes, reconnect: Backoff) -> Any:
        began = time.monotonic()
        delays = reconnect.delays(self._rng)
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._start(payload)
            except Failure as failure:
                delay_s = next(delays, None)
                if delay_s is None or self._wait(delay_s):
                    seconds = time.monotonic() - began
                    raise Failure(
                        f"gave up after {attempts} attempts over {seconds:.1f} s: {failure.message}"
                    ) from failure

    def _connect(self) -> None:
        if self._connection is not None:
            return
        try:
            address = (self._address.host, self._address.port)
            sock = socket.create_connection(address, self._connect_timeout_s)
            self._connection = FrameConnection(sock, idle_timeout_s=self._timeout_s)
        except OSError as error:
            raise Failure(
                f"cannot connect to the RLX server at {self._address}: {error}"
            ) from error

    def _exchange(self, payload: bytes, decode: Callable[[bytes], _Reply]) -> _Reply:
        try:
            return decode(self._ask(payload))
        except ProtocolError as error:
            self.disconnect()
            raise Failure(
                f"the RLX server at {self._address} broke the protocol: {error}"
            ) from error

    def _ask(self, payload: bytes) -> bytes:
        if self._connection is None:
            raise Failure("there is no connection; start an episode with init")
        try:
            self._connection.send(payload)
            reply = self._connection.receive()
        except OSError as error:
            self.disconnect()
            raise Failure(f"lost the RLX server at {self._address}: {error}") from error
        if reply is None:
            self.disconnect()
            raise Failure(f"the RLX server at {self._address} closed the connection")
        return reply

    def _tell(self, payload: bytes) -> None:
        if self._connection is None:
            return
        try:
            self._connection.send(payload)
        except OSError:
            # Whatever is asked next cannot be answered either, and says so.
            self.disconnect()


class _ClientMetrics(Metrics):
    """Metrics that travel over a client's connection."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        self._client._tell(encode_request(ScalarMetric(name, y, x)))
