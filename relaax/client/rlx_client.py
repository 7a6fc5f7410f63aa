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

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np

from relaax.address import Address
from relaax.client.action_masks import named_state
from relaax.client.checks import as_listed, checked_action, checked_reward, checked_state
from relaax.client.connector import Backoff, Connector, RetryPolicy
from relaax.client.failure import Failure
from relaax.client.server_connection import opened
from relaax.client.transport import Transport, default_transport
from relaax.observations import mapped
from relaax.processes.run_variables import run_of_this_process
from relaax.protocol.binary import Hello
from relaax.spaces import Space, space_of
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, Evaluation, Steps
from relaax.telemetry.metrics import Metrics

__all__ = ["Client", "Failure"]

#: The versions of the protocol.
Version = Literal[1, 2]

#: How to evaluate: with the policy's mode, or with samples.
Evaluate = Literal["deterministic", "stochastic"] | Evaluation

#: The only environment of a connection.
_ONLY = np.zeros(1, np.int64)


class BaseClient:
    """A client that has connections, one after another; hello None speaks version 1."""

    def __init__(
        self,
        rlx_server_url: str,
        transport: Transport | None,
        timeout_s: float | None,
        connect_timeout_s: float,
        retry: RetryPolicy,
        hello: Hello | None,
    ) -> None:
        address = Address.parse(rlx_server_url)
        transport = transport or default_transport()
        self._connector = Connector(address, transport, timeout_s, connect_timeout_s, retry, hello)

    def metrics(self) -> Metrics:
        """Return where the environments' scalars go: to the server, with its other metrics.

        Storing one never raises ``Failure``; the next message finds out that a connection is lost.
        """
        return _SentMetrics(self._connector)

    def disconnect(self) -> None:
        """Close the connection, if there is one. A later ``init`` connects again."""
        self._connector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.disconnect()


def hello_of(
    environments: int,
    environment: str,
    observation_space: Space | None,
    action_space: Space | None,
    evaluate: Evaluate | None,
    agents: Sequence[str] = (),
) -> Hello:
    """Return the hello of a new client."""
    evaluation = None if evaluate is None else Evaluation(evaluate)
    return Hello(
        secrets.token_hex(16), environment, environments, observation_space, action_space,
        evaluation, run=run_of_this_process(), agents=tuple(agents) or None,
    )  # fmt: skip


class _SentMetrics(Metrics):
    """Metrics that travel over a client's connection."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Store one, if there is a connection."""
        if self._connector.last is not None:
            self._connector.last.metric(name, y, x)


class Client(BaseClient):
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

    The client speaks version 2 of the protocol, whose states are numbers. ``protocol=1`` carries
    states of any kind, for example text, to an algorithm of your own. ``environment`` (at most 255
    characters) and the spaces are sent to the server, which refuses them if they do not fit its
    configuration; version 1 cannot send them.
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
        protocol: Version = 2,
        environment: str = "",
        observation_space: Space | None = None,
        action_space: Space | None = None,
        evaluate: Evaluate | None = None,
        transport: Transport | None = None,
    ) -> None:
        if protocol not in (1, 2):
            raise ValueError(f"protocol must be 1 or 2, is {protocol!r}")
        if evaluate is not None and protocol == 1:
            raise ValueError("version 1 of the protocol cannot evaluate")
        hello = None
        if protocol == 2:
            hello = hello_of(1, environment, observation_space, action_space, evaluate)
        retry = RetryPolicy(reconnect, wait)
        super().__init__(rlx_server_url, transport, timeout_s, connect_timeout_s, retry, hello)
        self._is_json = protocol == 1

    def init(self, state: Any) -> Any:
        """Start an episode with its first state and return the first action.

        An episode that is still running counts as cut off. With ``reconnect``, the client tries
        again when the server cannot be reached or closes instead of answering, until so many
        attempts in a row have failed.
        """
        return self._connector.with_retries(lambda: self._start(state))

    def send(self, reward: float, state: Any, *, action: Any = None) -> Any:
        """Report the reward of the previous action and the state now; return the next action.

        ``action`` is the executed action of that step, in the form in which actions are returned;
        if omitted, the returned action was executed. The server refuses an action that does not fit
        its action space.
        """
        connection = opened(self._connector.last)
        rewards, states = np.array([checked_reward(reward)]), self._row(state)
        if action is None:
            return _only(connection.step_all(rewards, states))
        return _only(connection.ask(_step(0, rewards, states, (), action)).actions)

    def reset(self, reward: float, *, action: Any = None) -> float:
        """Report the last reward of an episode that is over; return the sum of its rewards.

        The sum is the server's. The next episode starts with ``init``. ``action`` as in ``send``.
        """
        return self._end(TERMINATED, reward, lambda: (), action)

    def truncate(self, reward: float, state: Any, *, action: Any = None) -> float:
        """End an episode that was cut off, for example by a time limit, before its task was over.

        ``state`` is its last one, ``action`` as in ``send``. Returns the sum of its rewards.
        """
        return self._end(TRUNCATED | FINAL, reward, lambda: self._row(state), action)

    def _start(self, state: Any) -> Any:
        states = self._row(state)
        connection = self._connector.open(None if self._is_json else space_of(states))
        steps = _step(START, np.zeros(1), self._row(state), (), None)  # by the names of its welcome
        return _only(connection.ask(steps).actions)

    def _end(self, flags: int, reward: float, finals: Callable[[], Any], action: Any) -> float:
        connection = opened(self._connector.last)
        rewards = np.array([checked_reward(reward)])
        (score,) = connection.ask(_step(flags, rewards, (), finals(), action)).scores.tolist()
        return float(score)

    def _row(self, state: Any) -> Any:
        """Return a state, by the server's names, as the states of one environment."""
        if self._is_json:
            return [as_listed(named_state(state, None))]
        checked = checked_state(named_state(state, self._connector.asked))
        if isinstance(checked, dict):
            return mapped(lambda array: array[np.newaxis], checked)
        return checked[np.newaxis]  # as nearly always


def _step(flags: int, rewards: Any, observations: Any, finals: Any, action: Any) -> Steps:
    executed: Any = ()
    if action is not None:
        executed = checked_action(action)[np.newaxis]
        flags |= EXECUTED
    return Steps(_ONLY, np.array([flags], np.uint8), rewards, observations, finals, executed)


def _only(actions: Any) -> Any:
    """Return the only one of ``actions`` [1, ...]: a number, or an array."""
    (action,) = actions
    return action.item() if isinstance(action, np.generic) else action
