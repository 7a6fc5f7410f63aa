"""A client for many environments on one connection: one message each way per step.

    client = VectorClient("localhost:7001", environments=16)
    observations = reset_all()                                  # [16, ...]
    actions = client.init(observations)
    while True:
        rewards, observations, terminated, truncated, finals = step_all(actions)
        actions = client.send(rewards, observations, terminated, truncated, finals)

The network is evaluated once for each message.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.client.action_masks import MaskedState, named_state
from relaax.client.checks import (
    checked_actions,
    checked_flags,
    checked_rewards,
    checked_rows,
    checked_steps,
)
from relaax.client.connector import Backoff, RetryPolicy
from relaax.client.rlx_client import BaseClient, Evaluate, hello_of
from relaax.client.server_connection import opened
from relaax.client.transport import Transport
from relaax.protocol import binary
from relaax.protocol.binary import Answers
from relaax.spaces import Space, space_of
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, Steps

Array = npt.NDArray[Any]


class VectorClient(BaseClient):
    """A connection that carries ``environments`` environments, numbered from 0.

    It speaks only version 2 of the RLX protocol. The other arguments and the errors are as in
    ``Client``: after a ``Failure`` all environments start again with ``init``. The caller may
    overwrite its arrays as soon as a method returns.

    Observations are an array [N, ...], or a dict of arrays [N, ...] by name. Dicts and tuples in a
    dict are flattened: names are joined by ``/``, a tuple's elements are "0", "1" and so on.

    With ``agents``, the names of the agents of one environment, ``environments`` counts agents:
    that with number k is ``agents[k % len(agents)]`` of environment ``k // len(agents)``.
    ``MultiAgentClient`` knows them by their names.
    """

    def __init__(
        self,
        rlx_server_url: str,
        environments: int,
        *,
        timeout_s: float | None = None,
        connect_timeout_s: float = 10.0,
        reconnect: Backoff | None = None,
        wait: Callable[[float], object] = time.sleep,
        environment: str = "",
        observation_space: Space | None = None,
        action_space: Space | None = None,
        evaluate: Evaluate | None = None,
        transport: Transport | None = None,
        agents: Sequence[str] = (),
    ) -> None:
        if not 1 <= environments <= binary.MAX_ENVIRONMENTS:
            raise ValueError(
                f"environments is 1 to {binary.MAX_ENVIRONMENTS} on one connection, "
                f"not {environments}"
            )
        self.environments = environments
        self._numbers = np.arange(environments)
        hello = hello_of(
            environments, environment, observation_space, action_space, evaluate, agents
        )
        retry = RetryPolicy(reconnect, wait)
        super().__init__(rlx_server_url, transport, timeout_s, connect_timeout_s, retry, hello)

    def init(self, observations: Array | dict[str, Any]) -> Array:
        """Start an episode in every environment; return the first actions [N, ...].

        observations: [N, ...], or a dict. It connects if there is no connection. Episodes that are
        still running count as cut off.
        """
        flags = np.full(self.environments, START, np.uint8)
        steps = Steps(self._numbers, flags, np.zeros(self.environments), observations, ())
        return self.begin(steps).actions

    def send(
        self,
        rewards: Array,
        observations: Array | dict[str, Any],
        terminated: Array | None = None,
        truncated: Array | None = None,
        finals: Array | dict[str, Any] | None = None,
        *,
        actions: Array | None = None,
    ) -> Array:
        """Report a step of every environment; return the next actions [N, ...].

        rewards: [N], of the actions before. observations: [N, ...], for the next actions: in an
        environment whose episode ended, the first observation of the next one. terminated,
        truncated: bool [N]; if omitted, all are False. An episode that was terminated and truncated
        in the same step counts as terminated. finals: [F, ...], the last observations of the
        truncated episodes, in their order, in the same form as observations. actions: [N, ...], the
        executed ones; if omitted, the returned ones were executed.

        ValueError for an array of another length, for numbers that are not finite, and for names
        that cannot be sent.
        """
        flags = self._flags_of(terminated, truncated)
        rewards = checked_rewards(rewards, self.environments)
        observations = checked_rows("observations", self._named(observations), self.environments)
        if flags is None and finals is None and actions is None:
            return opened(self._connector.last).step_all(rewards, observations)
        if flags is None:
            flags = np.zeros(self.environments, np.uint8)
        finals = checked_rows("finals", self._named(finals), int(np.count_nonzero(flags & FINAL)))
        executed: Any = ()
        if actions is not None:
            flags |= EXECUTED
            executed = checked_actions(actions, self.environments)
        steps = Steps(self._numbers, flags, rewards, observations, finals, executed)
        return opened(self._connector.last).ask(steps).actions

    def begin(self, steps: Steps) -> Answers:
        """Start episodes in some environments, as ``init`` does in all; return the answers."""
        count = len(steps.environments)
        seen = checked_rows("observations", named_state(steps.observations, None), count)
        space = space_of(seen)
        return self._connector.with_retries(lambda: self._begin(steps, space))

    def exchange(self, steps: Steps) -> Answers:
        """Report the steps of some environments; return the answers.

        It serves environments that are ready at different times, and episodes whose end and next
        start are reported apart. ValueError as in ``send``.
        """
        return opened(self._connector.last).ask(self._checked(steps))

    def _flags_of(
        self, terminated: Array | None, truncated: Array | None
    ) -> npt.NDArray[np.uint8] | None:
        """Return the flags [N] of a step; None if no episode ended."""
        if terminated is None and truncated is None:
            return None
        flags = end_flags(
            checked_flags("terminated", terminated, self.environments),
            checked_flags("truncated", truncated, self.environments),
        )
        if not flags.any():
            return None
        flags[flags != 0] |= START
        return flags

    def _named(self, observations: Any) -> Any:
        """Return observations, and masks beside them, by the server's names."""
        if not isinstance(observations, MaskedState):
            return observations  # as nearly always
        return observations.named(self._connector.asked)

    def _checked(self, steps: Steps) -> Steps:
        """Return steps by the server's names; ValueError for those that cannot be sent."""
        named = replace(
            steps, observations=self._named(steps.observations), finals=self._named(steps.finals)
        )
        return checked_steps(named, self.environments)

    def _begin(self, steps: Steps, space: Space) -> Answers:
        connection = self._connector.open(space)
        return connection.ask(self._checked(steps))


def end_flags(terminated: Array, truncated: Array) -> npt.NDArray[np.uint8]:
    """Return the flags [N] of episodes that ended; a truncated one brings a final observation."""
    is_terminated = np.asarray(terminated, np.bool_)
    is_truncated = np.asarray(truncated, np.bool_) & ~is_terminated
    flags = is_terminated * TERMINATED + is_truncated * (TRUNCATED | FINAL)
    return flags.astype(np.uint8)
