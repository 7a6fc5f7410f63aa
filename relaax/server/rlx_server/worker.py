"""The message loop between one client and the agents of its environments."""

import time

from relaax.protocol.binary import ErrorCode, Metric
from relaax.protocol.framing import FrameConnection
from relaax.server.rlx_server.connection_agents import ConnectionAgents
from relaax.server.rlx_server.conversation import Conversation
from relaax.server.rlx_server.episodes import EPISODE_REWARD, Episodes
from relaax.steps import Steps


class Worker:
    """Answers one connection until its client leaves, or until ``timeout_s`` has passed.

    After ``timeout_s`` seconds the connection is closed at the next end of an episode: the client
    connects again, and a load balancer may send it elsewhere.
    """

    def __init__(
        self,
        conversation: Conversation,
        agents: ConnectionAgents,
        connection: FrameConnection,
        timeout_s: float | None,
    ) -> None:
        self._conversation = conversation
        self._agents = agents
        self._connection = connection
        self._closes_at = None if timeout_s is None else time.monotonic() + timeout_s
        self._metrics = agents.metrics()
        self._episodes = Episodes(conversation.environments, self._metrics)

    def run(self, first: bytes | None = None) -> None:
        """Serve; ProtocolError (InvalidState among them) when the client breaks the rules.

        ``first`` is a message that has been received already.
        """
        try:
            payload = first or self._connection.receive()
            while payload is not None and self._handle(payload):
                payload = self._connection.receive()
        finally:
            self._episodes.close()

    def _handle(self, payload: bytes) -> bool:
        """Answer one message; return False when the connection should be closed."""
        started_at = time.perf_counter()
        message = self._conversation.decode(payload)
        if isinstance(message, Metric):
            self._store(message)
            return True
        return self._answer(message, started_at)

    def _answer(self, steps: Steps, started_at: float) -> bool:
        scores, is_end = self._episodes.count(steps)
        is_over = is_end and self._time_is_up()
        goodbye = self._goodbye() if is_over else None
        if is_over and goodbye is None and len(steps.observations):
            return False  # version 1: before an episode begins that could not go on
        actions = self._agents.act(steps)
        reply = self._conversation.encode(steps, actions, scores)
        self._episodes.add_latency(time.perf_counter() - started_at)
        self._connection.send(reply)
        if goodbye is not None:
            self._connection.send(goodbye)
        return not is_over

    def _time_is_up(self) -> bool:
        return self._closes_at is not None and time.monotonic() >= self._closes_at

    def _goodbye(self) -> bytes | None:
        """Return what is said before the connection is closed; None in version 1."""
        text = "the connection has lasted as long as it may; connect again"
        return self._conversation.encode_error(ErrorCode.GO_ELSEWHERE, text)

    def _store(self, metric: Metric) -> None:
        name = metric.name
        if name == EPISODE_REWARD:
            name = f"{name} on client"
        self._metrics.scalar(name, metric.y, metric.x)
