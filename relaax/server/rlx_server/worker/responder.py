"""Turns the steps of all connections that are ready into answers, with one evaluation."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from relaax.errors import AgentError, NoRoom, ProtocolError
from relaax.metrics import Metrics
from relaax.protocol.binary import Metric
from relaax.server.rlx_server.slots import SlotPool
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.batch import Request, joined
from relaax.server.rlx_server.worker.connection import Actions, Connection
from relaax.server.rlx_server.worker.episodes import (
    EPISODE_REWARD,
    Episodes,
    FloatArray,
    NoEpisode,
)
from relaax.server.rlx_server.worker.measurements import Measurements
from relaax.steps import IntArray, Transitions


class Answer(NamedTuple):
    """What a request is answered with."""

    connection: Connection
    #: [A, ...], of the environments that want one.
    actions: Actions
    #: float64 [E]: sums of rewards of the episodes that ended.
    scores: FloatArray


class Refusal(NamedTuple):
    """Why the connection of a request is closed instead."""

    connection: Connection
    error: Exception


class Responder:
    """The environments of a worker: their slots, their episodes, and the agents that act for them.

    ``make_agents`` is called before the first environment comes. ``is_shared`` says whether many
    connections share the agents, and their evaluations are worth measuring.
    """

    def __init__(self, make_agents: Callable[[], Agents], is_shared: bool) -> None:
        self._make_agents = make_agents
        self._is_shared = is_shared
        self._agents: Agents | None = None
        self._slots = SlotPool()
        #: How many environments there are.
        self.environments = 0

    def prepare(self) -> Agents:
        """Make the agents, unless they have been made, and return them."""
        if self._agents is None:
            self._agents = self._make_agents()
            self._metrics: Metrics = self._agents.metrics()
            self._episodes = Episodes(self._metrics)
            self._measurements = Measurements(self._metrics, self._is_shared)
        return self._agents

    def open(self, environments: int) -> IntArray:
        """Return slots for environments that have come; NoRoom when there is none."""
        agents = self.prepare()
        slots = self._slots.take(environments)
        try:
            self._episodes.open(slots)
            agents.open(slots)
        except MemoryError as error:
            self._slots.give_back(slots)
            raise NoRoom(f"there is no room for {environments} more environments") from error
        self.environments += environments
        return slots

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone."""
        if len(slots) and self._agents is not None:
            self._agents.close_slots(slots)
            self._slots.give_back(slots)
            self.environments -= len(slots)

    def ends_episode(self, request: Request) -> bool:
        """Return whether an episode ends with a request, or is given up."""
        return self._episodes.any_ends(request.slots, request.steps)

    def give_up(self, slots: IntArray) -> None:
        """Count the episodes that go on in ``slots`` as over."""
        self._episodes.give_up(slots)

    def store(self, metric: Metric) -> None:
        """Store a client's own metric."""
        name = metric.name
        if name == EPISODE_REWARD:
            name = f"{name} on client"
        self._metrics.scalar(name, metric.y, metric.x)

    def answer(self, requests: list[Request], arrived_at: float) -> Iterator[Answer | Refusal]:
        """Yield what each request is answered with; they arrived at ``arrived_at``."""
        yield from self._answer(requests, arrived_at)
        self._measurements.add_turn(arrived_at, len(requests))
        self._episodes.store_if_due()

    def close(self) -> None:
        """Store the metrics that are left and end the agents."""
        if self._agents is not None:
            self._episodes.close()
            self._measurements.store()
            self._agents.close()

    def _answer(self, requests: list[Request], arrived_at: float) -> Iterator[Answer | Refusal]:
        """Answer requests together; where one of them is refused, each for itself."""
        agents = self.prepare()
        if len(requests) > 1 and not agents.act_together:
            yield from self._answer_one_by_one(requests, arrived_at)
            return
        try:
            transitions, actions, scores = self._act(agents, requests, arrived_at)
        except (ProtocolError, AgentError) as error:
            if len(requests) > 1:
                yield from self._answer_one_by_one(requests, arrived_at)
            else:
                yield _refusal(requests[0], error)
            return
        yield from _split(requests, transitions, actions, scores)

    def _answer_one_by_one(
        self, requests: list[Request], arrived_at: float
    ) -> Iterator[Answer | Refusal]:
        for request in requests:
            yield from self._answer([request], arrived_at)

    def _act(
        self, agents: Agents, requests: list[Request], arrived_at: float
    ) -> tuple[Transitions, Actions, FloatArray]:
        """Return what requests say, actions [A] and scores [E].

        ProtocolError where a request is refused. Of joined requests nothing has been changed then.
        """
        batch = joined(requests)
        transitions = self._episodes.read(batch.slots, batch.flags, batch.rewards)
        states, finals = agents.check(batch.states), agents.check(batch.finals)
        scores = self._episodes.count(transitions)
        began_at = time.monotonic()
        actions = agents.act(transitions, states, finals)
        self._measurements.add_evaluation(arrived_at, began_at, len(transitions.acting))
        return transitions, actions, scores


def _split(
    requests: list[Request], transitions: Transitions, actions: Actions, scores: FloatArray
) -> Iterator[Answer | Refusal]:
    """Yield each request's own part of the actions and scores."""
    acted = ended = 0
    for request in requests:
        actions_end, scores_end = acted + len(request.steps.observations), ended
        if not transitions.only_steps:
            scores_end += int(np.count_nonzero(request.steps.has_ended))
        own_scores = scores[ended:scores_end]
        if len(own_scores) and not np.isfinite(own_scores).all():
            error = ProtocolError("the sum of an episode's rewards is not finite")
            yield Refusal(request.connection, error)
        else:
            yield Answer(request.connection, actions[acted:actions_end], own_scores)
        acted, ended = actions_end, scores_end


def _refusal(request: Request, error: Exception) -> Refusal:
    """Return a refusal that names the environment by the client's own number."""
    if isinstance(error, NoEpisode):
        number = int(np.flatnonzero(request.connection.slots == error.slot)[0])
        error = ProtocolError(f"{error} in environment {number}")
    return Refusal(request.connection, error)
