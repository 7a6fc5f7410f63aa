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
from typing import Any, Literal, Self

from relaax.address import Address
from relaax.client.action_masks import named_state
from relaax.client.checks import checked_reward, checked_state
from relaax.client.connector import Connector, OldServer, Timeouts
from relaax.client.failure import Failure, not_connected
from relaax.client.retry_policy import Backoff, RetryPolicy
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


class Client:
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
        self._connector = Connector(
            Address.parse(rlx_server_url),
            transport or default_transport(),
            Timeouts(timeout_s, connect_timeout_s),
            RetryPolicy(reconnect, wait),
        )
        self._protocol = protocol
        self._environment = environment
        self._observation_space = observation_space
        self._action_space = action_space
        self._evaluation = None if evaluate is None else Evaluation(evaluate)
        self._run_id = secrets.token_hex(16)
        self._session: Session | None = None

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

    def metrics(self) -> Metrics:
        """Return where the environment's scalars go: to the server, with its other metrics.

        Storing one never raises ``Failure``; the next message finds out that a connection is lost.
        """
        return ToldMetrics(self._tell_metric)

    def disconnect(self) -> None:
        """Close the connection, if there is one. A later ``init`` connects again."""
        self._connector.close()
        self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.disconnect()

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
        hello = Hello(
            self._run_id,
            self._environment,
            1,
            self._observation_space or seen,
            self._action_space,
            self._evaluation,
            run=run_of_this_process(),
        )
        try:
            return BinarySession(self._connector.greet(hello))
        except OldServer as closed:
            if self._protocol == 2:
                raise Failure(
                    "the RLX server closed the connection at the hello: it has no room, or "
                    "this is another port, for example the port of gRPC or --http-bind"
                ) from closed
            _log.warning(
                "the RLX server does not answer a hello; speaking version 1 with it (%s)",
                self._connector.why_no_answer(),
            )
        return JsonSession(self._connector.connect(), takes_anything=False)

    def _tell_metric(self, name: str, y: float, x: float | None) -> None:
        if self._session is not None:
            self._session.metric(name, y, x)


class ToldMetrics(Metrics):
    """Metrics that travel over a client's connection, by ``tell``."""

    def __init__(self, tell: Callable[[str, float, float | None], None]) -> None:
        self._tell = tell

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Store one, if there is a connection."""
        self._tell(name, y, x)
