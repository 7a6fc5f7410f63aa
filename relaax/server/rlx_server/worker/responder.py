"""Turns the steps of all connections that are ready into answers, with one evaluation."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from relaax.acting.first_look import FirstLook
from relaax.algorithm_base import BatchAgentBase, EnvironmentInfo
from relaax.errors import AgentError, InvalidState, NoRoom, ProtocolError
from relaax.observations import Observations, joined, kind_of, mapped
from relaax.protocol.binary import Hello, Metric
from relaax.server.rlx_server.limits import NO_LIMITS, ClientLimits
from relaax.server.rlx_server.tally import WorkerRow, private_row
from relaax.server.rlx_server.tally.table import SlotPool
from relaax.server.rlx_server.worker.action_rule import ActionRule, UnusableActions
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.episodes import Episodes, FloatArray, NoEpisode
from relaax.server.rlx_server.worker.measurements import Measurements
from relaax.server.rlx_server.worker.session import Actions, Session
from relaax.server.rlx_server.worker.settings import seed_after
from relaax.steps import Flags, IntArray, States, Steps, Transitions, number_of
from relaax.telemetry.metrics import OF_CLIENT, Metrics

NO_STATES: npt.NDArray[Any] = np.zeros(0, np.float32)

_UNSIGNED = np.dtype(np.uint64)


def finals_of_truncated(steps: Steps) -> States:
    """Return the final states without those of terminated episodes, after which nothing follows."""
    if number_of(steps.finals) == 0:
        return NO_STATES
    is_truncated = steps.is_truncated[steps.has_final]
    if isinstance(steps.finals, np.ndarray | dict):
        finals: Observations = mapped(lambda array: array[is_truncated], steps.finals)
        return finals
    return [final for final, wanted in zip(steps.finals, is_truncated, strict=True) if wanted]


def are_of_one_kind(parts: Sequence[States]) -> TypeGuard[Sequence[Observations]]:
    """Return whether ``parts`` are arrays, or arrays by name, that can be joined."""
    kinds_of = [kind_of(part) for part in parts if isinstance(part, np.ndarray | dict)]
    return len(kinds_of) == len(parts) and all(kind == kinds_of[0] for kind in kinds_of)


def kinds(states: Observations) -> str:
    """Return types of numbers and shapes, for people."""
    return named_kinds(mapped(lambda array: f"{array.dtype}{list(array.shape[1:])}", states))


def named_kinds(found: Any) -> str:
    """Return a type of numbers, or types by name, for people."""
    if not isinstance(found, dict):
        return str(found)
    return ", ".join(f"{name!r}: {kind}" for name, kind in found.items())


Array = npt.NDArray[Any]


class Request(NamedTuple):
    """Steps that wait for their answer."""

    session: Session
    steps: Steps

    @property
    def slots(self) -> IntArray:
        """int64 [M]: where its environments are in this worker."""
        slots: IntArray = self.session.slots[self.steps.environments]
        return slots


class Answer(NamedTuple):
    """The answer to a request."""

    session: Session
    #: [A, ...], of the environments that want one.
    actions: Actions
    #: float64 [E]: sums of rewards of the episodes that ended.
    scores: FloatArray


class Refusal(NamedTuple):
    """Why the session of a request ends instead."""

    session: Session
    error: Exception


class _Report(NamedTuple):
    """The joined content of several requests."""

    transitions: Transitions
    #: [A, ...]
    states: Observations
    #: Of the truncated episodes.
    finals: Observations


class Responder:
    """The environments of a worker: their slots, their episodes, and the agents that act for them.

    ``make_agents`` is called before the first environment comes. ``is_shared``: many connections
    share the agents, and their evaluations are worth measuring. All environments have one kind of
    observation, with the same names and of bytes or floats; others are refused while any of them is
    there. ``rule`` decides which actions may be returned; if omitted, any may. Events are counted
    in ``row``, and ``look`` inspects the first steps.
    """

    #: The prefix of clients' own metrics.
    _of_client = OF_CLIENT

    def __init__(
        self,
        make_agents: Callable[[], Agents],
        is_shared: bool,
        rule: ActionRule | None = None,
        row: WorkerRow | None = None,
        limits: ClientLimits = NO_LIMITS,
        look: FirstLook | None = None,
    ) -> None:
        self._look = look
        self._limits = limits
        self._make_agents = make_agents
        self._row = row or private_row()
        self._is_shared = is_shared
        self._rule = rule or ActionRule(None, "of this worker")
        self._agents: Agents | None = None
        #: Whether they learn while they serve: see ``BatchAgentBase``.
        self.learns = True
        self._slots = SlotPool()
        #: Of the observations of all environments: a type of numbers, or types by name.
        self._dtype: Any = None
        #: How many environments there are, and how many there have been.
        self.environments = 0
        self._introductions = 0
        #: The places of environments among those of all workers: int64 [slots].
        self._places: IntArray = np.zeros(0, np.int64)

    def prepare(self) -> Agents:
        """Make the agents, unless they have been made, and return them."""
        if self._agents is None:
            self._agents = self._make_agents()
            self.learns = self._agents.batch_agent.learns
            self._metrics: Metrics = self._agents.stub.metrics()
            self._episodes, self._measurements = self._counts(self._agents)
        return self._agents

    def open(self, hello: Hello) -> IntArray:
        """Return slots for the environments of a client; NoRoom if there are not enough.

        AgentError when an agent cannot be made for one of them, or fails when it is introduced;
        InvalidState when it refuses the environment.
        """
        environments = hello.environments
        agents = self.prepare()
        slots = self._slots.take(environments)
        try:
            self._open(slots, hello, agents)
        except MemoryError as error:
            raise NoRoom(f"there is no room for {environments} more environments") from error
        return slots

    def _open(self, slots: IntArray, hello: Hello, agents: Agents) -> None:
        """Let environments have ``slots``, which are free again after an exception."""
        try:
            self._episodes.open(slots)
            agents.batch_agent.open(slots)
        except BaseException:
            self._slots.give_back(slots)
            raise
        self.environments += len(slots)
        try:
            places = self._placed(slots)
            agents.batch_agent.connected(slots, self._introduced(hello, agents, places))
        except BaseException:
            self.close_slots(slots)
            raise

    def _placed(self, slots: IntArray) -> list[Callable[[], int]]:
        """Give environments in ``slots`` places; return descriptions with these."""
        places = self._row.places.take(len(slots))
        size = max(int(slots.max()) + 1, len(self._places))
        self._places = np.concatenate([self._places, np.zeros(size - len(self._places), np.int64)])
        self._places[slots] = places
        return [partial(self._row.places.in_training, place) for place in places.tolist()]

    def _leave_places(self, slots: IntArray) -> None:
        if len(self._places) > slots.max():  # else no place was given
            self._row.places.give_back(self._places[slots])

    def _introduced(
        self, hello: Hello, agents: Agents, places: Sequence[Callable[[], int]]
    ) -> list[EnvironmentInfo]:
        """Return the description of a client's environments for agents."""
        first = self._introductions
        self._introductions += hello.environments
        return [
            EnvironmentInfo(
                name=hello.environment,
                observation_space=hello.observation_space,
                action_space=hello.action_space,
                number=number,
                seed=seed_after(agents.first_seed, first + number),
                place=place,
            )
            for number, place in enumerate(places)
        ]

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone."""
        if len(slots) and self._agents is not None:
            self._agents.batch_agent.close_slots(slots)
            self._slots.give_back(slots)
            self._leave_places(slots)
            self.environments -= len(slots)
            if self.environments == 0:
                self._dtype = None

    def ends_episode(self, request: Request) -> bool:
        """Return whether an episode ends with a request, or is given up."""
        return self._episodes.any_ends(request.slots, request.steps)

    def give_up(self, slots: IntArray) -> None:
        """Count the episodes that go on in ``slots`` as over."""
        self._episodes.give_up(slots)

    def store(self, metric: Metric) -> None:
        """Store a client's own metric, under a prefix that the service does not use."""
        self._metrics.scalar(self._of_client + metric.name, metric.y, metric.x)

    def answer(self, requests: list[Request], arrived_at: float) -> Iterator[Answer | Refusal]:
        """Yield the answer to each request; they arrived at ``arrived_at``."""
        yield from self._answer(requests, arrived_at)
        self._measurements.add_turn(arrived_at, len(requests))
        self._episodes.store_if_due()

    def encoded(self, answer: Answer) -> bytes:
        """Return an answer as its session's client reads it; UnusableActions where it cannot."""
        try:
            return answer.session.encoded(answer.actions, answer.scores)
        except (TypeError, ValueError) as error:
            raise self._rule.unsendable(error) from error

    def note_connected(self, connections: int) -> None:
        """Log now and then how many environments there are, on so many connections."""
        if self._agents is not None:
            self._measurements.note_connected(self.environments, connections)

    def close(self) -> None:
        """Store the metrics that are left and end the agents."""
        if self._agents is not None:
            self._episodes.close()
            self._measurements.close()
            self._end(self._agents)

    def _counts(self, agents: Agents) -> tuple[Episodes, Measurements]:
        """Return the counter of episodes, and the measurements of the worker."""
        metrics = agents.stub.metrics()
        episodes = Episodes(metrics, most_steps=self._limits.most_episode_steps)
        return episodes, Measurements(metrics, self._is_shared, self._row)

    def _count_taken(self, steps: int) -> None:
        if self.learns:
            self._row.count_taken(steps)

    def _end(self, agents: Agents) -> None:
        agents.close()

    def _answer(self, requests: list[Request], arrived_at: float) -> Iterator[Answer | Refusal]:
        """Answer requests together; each for itself where one of them cannot be used.

        A refusal by the agent while it acts holds for all: their steps have been counted.
        """
        agents = self.prepare()
        if len(requests) > 1 and not agents.act_together:
            yield from self._answer_one_by_one(requests, arrived_at)
            return
        try:
            report = self._read(agents.batch_agent, requests)
        except (ProtocolError, AgentError) as error:
            if len(requests) > 1:
                yield from self._answer_one_by_one(requests, arrived_at)
            else:
                yield _refusal(requests[0], error)
            return
        transitions = report.transitions
        scores = self._episodes.count(transitions)
        self._count_taken(len(transitions.stepped))
        try:
            actions = self._act(agents.batch_agent, report, arrived_at)
        except (ProtocolError, AgentError) as error:
            yield from (Refusal(request.session, error) for request in requests)
            return
        if self._fits(actions, len(transitions.acting)):
            yield from _split(requests, transitions, actions, scores)
        else:
            yield from self._checked_answers(requests, transitions, actions, scores)

    def _fits(self, actions: Actions, count: int) -> bool:
        """Return whether actions are of the usual kind and in their range, as most are.

        The rule looks at others more closely, and names the fault.
        """
        rule = self._rule
        if (
            type(actions) is not np.ndarray
            or actions.dtype not in rule.dtypes
            or actions.shape[:1] != (count,)
            or (actions.shape[1:] != rule.shape and rule.shape is not None)
        ):
            return False
        if rule.limits is None:
            within = np.isfinite(actions)
        else:
            within = actions.view(_UNSIGNED) < rule.limits
        return bool(np.logical_and.reduce(within, axis=None))

    def _checked_answers(
        self,
        requests: list[Request],
        transitions: Transitions,
        actions: Actions,
        scores: FloatArray,
    ) -> Iterator[Answer | Refusal]:
        """Yield answers with usable actions; refusals name the fault of the others.

        Each request is refused for its own actions: a state that makes a network overflow is one
        client's alone.
        """
        try:
            actions = self._rule.counted(actions, len(transitions.acting))
        except UnusableActions as error:
            yield from (Refusal(request.session, error) for request in requests)
            return
        for answer in _split(requests, transitions, actions, scores):
            yield answer if isinstance(answer, Refusal) else self._with_usable_actions(answer)

    def _with_usable_actions(self, answer: Answer) -> Answer | Refusal:
        try:
            return answer._replace(actions=self._rule.usable(answer.actions))
        except UnusableActions as error:
            return Refusal(answer.session, error)

    def _answer_one_by_one(
        self, requests: list[Request], arrived_at: float
    ) -> Iterator[Answer | Refusal]:
        for request in requests:
            yield from self._answer([request], arrived_at)

    def _read(self, agent: BatchAgentBase, requests: list[Request]) -> _Report:
        """Return the joined requests; ProtocolError or AgentError if one cannot be used.

        Nothing changes.
        """
        slots, flags, rewards = _joined(requests)
        transitions = self._episodes.read(slots, flags, rewards)
        states = self._checked(agent, [r.steps.observations for r in requests])
        finals: Observations = NO_STATES
        if not transitions.only_steps:
            finals = self._checked(agent, [finals_of_truncated(r.steps) for r in requests])
        if len(transitions.executed):
            executed = [r.steps.executed for r in requests if len(r.steps.executed)]
            checked = [agent.check_executed(actions) for actions in executed]
            transitions = transitions._replace(executed_actions=np.concatenate(checked))
        return _Report(transitions, states, finals)

    def _act(self, agent: BatchAgentBase, report: _Report, arrived_at: float) -> Actions:
        """Return actions [A]."""
        if number_of(report.states):
            self._dtype = _dtype_of(report.states)
        if self._look is not None and not self._look.take(
            report.transitions.rewards, report.states
        ):
            self._look = None
        began_at = time.monotonic()
        actions: Actions = agent.act(report.transitions, report.states, report.finals)
        self._measurements.add_evaluation(arrived_at, began_at, len(report.transitions.acting))
        return actions

    def _checked(self, agent: BatchAgentBase, parts: list[States]) -> Observations:
        """Return all states as one array, or as arrays by name; InvalidState for unusable ones.

        States of one kind are joined and checked at once, all others one by one. Nothing changes.
        """
        parts = [part for part in parts if number_of(part)]
        if not parts:
            return NO_STATES
        if len(parts) == 1:
            return self._of_one_dtype(agent.check(parts[0]))
        if _are_alike(parts):
            return self._of_one_dtype(agent.check(np.concatenate(parts)))
        if are_of_one_kind(parts):
            return self._of_one_dtype(agent.check(joined(parts)))
        checked = [self._of_one_dtype(agent.check(part)) for part in parts]
        if not are_of_one_kind(checked):
            raise InvalidState("environments report observations of different kinds")
        return joined(checked)

    def _of_one_dtype(self, states: Observations) -> Observations:
        if self._dtype is not None and _dtype_of(states) != self._dtype:
            raise InvalidState(
                f"observations are {kinds(states)}, those of the other environments here are "
                f"{named_kinds(self._dtype)}"
            )
        return states


def _joined(requests: list[Request]) -> tuple[IntArray, Flags, FloatArray]:
    """Return slots [M], flags [M] and rewards [M] of all requests; copies, but for a single one."""
    if len(requests) == 1:
        request = requests[0]
        return request.slots, request.steps.flags, request.steps.rewards
    return (
        np.concatenate([request.slots for request in requests]),
        np.concatenate([request.steps.flags for request in requests]),
        np.concatenate([request.steps.rewards for request in requests]),
    )


def _are_alike(parts: list[States]) -> TypeGuard[list[Array]]:
    """Return whether ``parts`` are arrays without names that can be joined, as most are."""
    first = parts[0]
    return isinstance(first, np.ndarray) and all(
        isinstance(part, np.ndarray)
        and part.dtype == first.dtype
        and part.shape[1:] == first.shape[1:]
        for part in parts
    )


def _dtype_of(states: Observations) -> Any:
    if isinstance(states, dict):
        return {name: array.dtype for name, array in states.items()}
    return states.dtype


def _split(
    requests: list[Request], transitions: Transitions, actions: Actions, scores: FloatArray
) -> Iterator[Answer | Refusal]:
    """Yield each request's own part of the actions and scores."""
    acted = ended = 0
    for request in requests:
        actions_end, scores_end = acted + request.steps.actions, ended
        if not transitions.only_steps:
            scores_end += int(np.count_nonzero(request.steps.has_ended))
        own_scores = scores[ended:scores_end]
        if len(own_scores) and not np.isfinite(own_scores).all():
            error = ProtocolError("the sum of an episode's rewards is not finite")
            yield Refusal(request.session, error)
        else:
            yield Answer(request.session, actions[acted:actions_end], own_scores)
        acted, ended = actions_end, scores_end


def _refusal(request: Request, error: Exception) -> Refusal:
    """Return a refusal that names the environment by the client's own number."""
    if isinstance(error, NoEpisode):
        number = int(np.flatnonzero(request.session.slots == error.slot)[0])
        error = ProtocolError(f"{error} in environment {number}")
    return Refusal(request.session, error)
