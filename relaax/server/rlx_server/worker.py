"""The message loop between one client and its agent."""

import time
from typing import Any

from relaax.algorithm_base import AgentBase
from relaax.common.errors import ProtocolError
from relaax.common.protocol.framing import FrameConnection
from relaax.common.protocol.messages import (
    Act,
    RewardAndAct,
    RewardAndReset,
    ScalarMetric,
    decode_request,
    encode_action,
    encode_score,
)
from relaax.server.rlx_server.episode import EpisodeRecord


class Worker:
    """Answers one connection until its client leaves, or until ``timeout_s`` has passed.

    After ``timeout_s`` seconds the connection is closed at the next end of an episode: the client
    connects again, and a load balancer may send it elsewhere.
    """

    def __init__(
        self, agent: AgentBase, connection: FrameConnection, timeout_s: float | None
    ) -> None:
        self._agent = agent
        self._connection = connection
        self._closes_at = None if timeout_s is None else time.monotonic() + timeout_s
        self._metrics = agent.metrics()
        self._episode = EpisodeRecord(self._metrics)

    def run(self) -> None:
        """Serve; ProtocolError (InvalidState among them) when the client breaks the rules."""
        goes_on = True
        while goes_on:
            payload = self._connection.receive()
            goes_on = payload is not None and self._handle(payload)

    def _handle(self, payload: bytes) -> bool:
        """Answer one message; return False when the connection should be closed."""
        started_at = time.perf_counter()
        message = decode_request(payload)
        match message:
            case Act(state):
                if self._episode.is_running:
                    self._episode.end()
                    if self._time_is_up():
                        return False
                self._episode.start()
                self._reply_action(self._agent.act(state), started_at)
            case RewardAndAct(reward, state):
                self._require_running("reward_and_act")
                self._episode.add_reward(reward)
                self._reply_action(self._agent.reward_and_act(reward, state), started_at)
            case RewardAndReset(reward):
                self._require_running("reward_and_reset")
                self._episode.add_reward(reward)
                self._connection.send(encode_score(self._agent.reward_and_reset(reward)))
                self._episode.end()
                return not self._time_is_up()
            case ScalarMetric(name, y, x):
                self._metrics.scalar(name, y, x)
        return True

    def _reply_action(self, action: Any, started_at: float) -> None:
        reply = encode_action(action)
        self._episode.add_action(time.perf_counter() - started_at)
        self._connection.send(reply)

    def _require_running(self, verb: str) -> None:
        if not self._episode.is_running:
            raise ProtocolError(f"{verb} came before act: no episode is going on")

    def _time_is_up(self) -> bool:
        return self._closes_at is not None and time.monotonic() >= self._closes_at
