"""The RLX client: an environment asks for actions and reports rewards.

    client = Client("localhost:7001")
    while True:
        action = client.init(environment.reset())
        while True:
            reward, state, is_over = environment.step(action)
            if is_over:
                score = client.reset(reward)
                break
            action = client.send(reward, state)

A state is a number, a list, a numpy array, or a dict of these by name; an action is an int or a
numpy array.

If a safety layer, a person or a limit of the plant changed the action, report the executed one:
``client.send(reward, state, action=executed)``. The algorithm learns from it instead of the chosen
one.
"""

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, Literal, Self, TypeVar

from relaax.address import Address
from relaax.client.action_masks import named_state
from relaax.client.checks import checked_reward, checked_state
from relaax.client.connector import (
    ANOTHER_PORT,
    CLOSED_AT_HELLO,
    Backoff,
    Connector,
    OldServer,
    RetryPolicy,
    Timeouts,
)
from relaax.client.failure import Failure, not_connected
from relaax.client.server_connection import ServerConnection, StepsSession
from relaax.client.sessions import BinarySession, JsonSession, Session, as_row
from relaax.client.transport import Transport, default_transport
from relaax.evaluation import Evaluation
from relaax.processes.run_variables import run_of_this_process
from relaax.protocol.binary import Hello
from relaax.spaces import Space, space_of
from relaax.telemetry.metrics import Metrics

__all__ = ["Client", "Failure"]

_log = logging.getLogger(__name__)

#: The versions of the protocol.
Version = Literal[1, 2]

#: How to evaluate: with the policy's mode, or with samples.
Evaluate = Literal["deterministic", "stochastic"] | Evaluation

_Session = TypeVar("_Session", Session, StepsSession)


class BaseClient(Generic[_Session]):
    """The connection of a client, its hello, and the session on it."""

    def __init__(
        self,
        rlx_server_url: str,
        transport: Transport | None,
        timeouts: Timeouts,
        retry: RetryPolicy,
        environments: int,
        environment: str,
        observation_space: Space | None,
        action_space: Space | None,
        evaluate: Evaluate | None,
    ) -> None:
        self._connector = Connector(
            Address.parse(rlx_server_url), transport or default_transport(), timeouts, retry
        )
        evaluation = None if evaluate is None else Evaluation(evaluate)
        self._hello = Hello(
            secrets.token_hex(16), environment, environments, observation_space, action_space,
            evaluation, run=run_of_this_process(),
        )  # fmt: skip
        self._session: _Session | None = None

    def metrics(self) -> Metrics:
        """Return where the environments' scalars go: to the server, with its other metrics.

        Storing one never raises ``Failure``; the next message finds out that a connection is lost.
        """
        return _SentMetrics(lambda: self._session)

    def disconnect(self) -> None:
        """Close the connection, if there is one. A later ``init`` connects again."""
        self._connector.close()
        self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.disconnect()

    def _greeted(self, seen: Space) -> ServerConnection:
        """Return a new connection whose server takes the announced spaces, or the one ``seen``."""
        hello = self._hello
        return self._connector.greet(
            replace(hello, observation_space=hello.observation_space or seen)
        )


class _SentMetrics(Metrics):
    """Metrics that travel over a client's connection."""

    def __init__(self, session: Callable[[], Session | StepsSession | None]) -> None:
        self._session = session

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Store one, if there is a connection."""
        session = self._session()
        if session is not None:
            session.metric(name, y, x)


class Client(BaseClient[Session]):
    """A connection to an RLX server, made by the first ``init``.

    ``rlx_server_url`` is ``HOST:PORT`` or ``[IPV6]:PORT``, else ``ConfigurationError`` is raised.
    ``timeout_s`` bounds the wait for one answer; if omitted, the client waits as long as the
    connection lasts. With ``reconnect``, ``init`` tries again after a failure; ``wait`` is called
    with each pause in seconds, and when it returns true (as ``threading.Event.wait`` does once the
    event is set) no further attempt follows. Every method raises ``Failure`` when the server cannot
    answer, and ``ValueError`` or ``TypeError`` for a state or a reward that cannot be sent.

    When a connection was lost in the middle of an episode, ``init`` pauses before it connects, with
    ``reconnect`` or without.

    Dicts and tuples in a dict are flattened: ``{"arm": {"angle": 1.0}}`` is one number with the
    name ``arm/angle``, and the names of a tuple's elements are "0", "1" and so on.

    The client speaks version 2 of the protocol, whose states are numbers, and version 1 with a
    server that closes at every hello and has never answered one. ``protocol`` fixes the version: 1
    carries states of any kind, for example text, to an algorithm of your own. ``environment`` (at
    most 255 characters) and the spaces are sent to the server, which refuses them if they do not
    fit its configuration.
    With ``evaluate`` the server plays each episode with one policy, "deterministic" by its mode and
    "stochastic" with samples; it keeps the scores and does not learn. That needs version 2, and a
    server that promises it: ``init`` raises ``Failure`` otherwise.
    ``transport`` opens the connections; if omitted, they use TCP.
    """

    def __init__(
        self,
        rlx_server_url: str,
        *,
        timeout_s: float | None = None,
        connect_timeout_s: float = 10.0,
        reconnect: Backoff | None = None,
        wait: Callable[[float], object] = time.sleep,
        protocol: Version | None = None,
        environment: str = "",
        observation_space: Space | None = None,
        action_space: Space | None = None,
        evaluate: Evaluate | None = None,
        transport: Transport | None = None,
    ) -> None:
        if protocol not in (None, 1, 2):
            raise ValueError(f"protocol must be 1 or 2, is {protocol!r}")
        if evaluate is not None:
            if protocol == 1:
                raise ValueError("version 1 of the protocol cannot evaluate")
            protocol = 2
        timeouts, retry = Timeouts(timeout_s, connect_timeout_s), RetryPolicy(reconnect, wait)
        super().__init__(
            rlx_server_url, transport, timeouts, retry, 1,
            environment, observation_space, action_space, evaluate,
        )  # fmt: skip
        self._protocol = protocol

    def init(self, state: Any) -> Any:
        """Start an episode with its first state and return the first action.

        An episode that is still running counts as cut off. With ``reconnect``, the client tries
        again when the server cannot be reached or closes instead of answering, until so many
        attempts in a row have failed.
        """
        return self._connector.with_retries(lambda: self._connected_session(state).start(state))

    def send(self, reward: float, state: Any, *, action: Any = None) -> Any:
        """Report the reward of the previous action and the state now; return the next action.

        ``action`` is the executed action of that step, in the form in which actions are returned;
        if omitted, the returned action was executed. The server refuses an action that does not fit
        its action space.
        """
        return self._open_session().step(checked_reward(reward), state, action)

    def reset(self, reward: float, *, action: Any = None) -> float:
        """Report the last reward of an episode that is over; return the sum of its rewards.

        The sum is the server's. The next episode starts with ``init``. ``action`` as in ``send``.
        """
        return self._open_session().terminate(checked_reward(reward), action)

    def truncate(self, reward: float, state: Any, *, action: Any = None) -> float:
        """End an episode that was cut off, for example by a time limit, before its task was over.

        ``state`` is its last one, ``action`` as in ``send``. Returns the sum of its rewards.
        """
        return self._open_session().truncate(checked_reward(reward), state, action)

    def _open_session(self) -> Session:
        if self._session is None or not self._session.is_open:
            raise not_connected()
        return self._session

    def _connected_session(self, state: Any) -> Session:
        """Return the session; connect first if there is none."""
        if self._session is None or not self._session.is_open:
            self._session = self._connect(state)
        return self._session

    def _connect(self, state: Any) -> Session:
        if self._protocol == 1:
            return JsonSession(self._connector.connect(), takes_anything=True)
        seen = space_of(as_row(checked_state(named_state(state, None))))
        try:
            return BinarySession(self._greeted(seen))
        except OldServer as closed:
            if self._protocol == 2:
                raise Failure(f"{CLOSED_AT_HELLO}, or {ANOTHER_PORT}") from closed
            _log.warning(
                "the RLX server does not answer a hello; speaking version 1 with it (%s)",
                self._connector.why_no_answer(),
            )
        return JsonSession(self._connector.connect(), takes_anything=False)
