"""Turns the steps of all connections that are ready into answers, with one evaluation.

A worker has a responder for training, and one for each kind of evaluation.
"""

import itertools
import time
from collections.abc import Callable, Iterator

from relaax.algorithm_base import BatchAgentBase, Evaluation, NullMetrics
from relaax.configuration.first_look import FirstLook, first_look
from relaax.errors import AgentError, NoRoom, ProtocolError
from relaax.protocol.binary import Hello, Metric
from relaax.server.rlx_server.limits import NO_LIMITS, ClientLimits
from relaax.server.rlx_server.tally import WorkerRow, private_row
from relaax.server.rlx_server.worker.action_rule import ActionRule
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.answers import Answer, Refusal, answers_to, refusal
from relaax.server.rlx_server.worker.environments import Environments, Episodes, EvaluationEpisodes
from relaax.server.rlx_server.worker.measurements import Measurements
from relaax.server.rlx_server.worker.requests import Joiner, Report, Request
from relaax.server.rlx_server.worker.session import Actions
from relaax.server.rlx_server.worker.settings import SEEDS, WorkerSettings, seed_after
from relaax.steps import IntArray
from relaax.telemetry.kept_counts import TAKEN
from relaax.telemetry.metrics import OF_CLIENT, OF_EVALUATING_CLIENT, Metrics


class Responder:
    """The environments of a worker: their slots, their episodes, and the agents that act for them.

    ``make_agents`` is called before the first environment comes. ``is_shared``: many connections
    share the agents, and their evaluations are worth measuring. ``rule`` decides which actions may
    be returned; if omitted, any may. Events are counted in ``row``, and ``look`` inspects the first
    steps.
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
        self._make_agents = make_agents
        #: As given; an evaluating responder has the same.
        self.is_shared, self.limits = is_shared, limits
        self.row = row or private_row()
        self.rule = rule or ActionRule(None, "of this worker")
        self._agents: Agents | None = None
        #: Whether they learn while they serve: see ``BatchAgentBase``.
        self.learns = True
        self._environments = Environments(self.row)

    @property
    def environments(self) -> int:
        """How many environments there are."""
        return self._environments.count

    def prepare(self) -> Agents:
        """Make the agents, unless they have been made, and return them."""
        if self._agents is None:
            self._agents = self._make_agents()
            self.learns = self._agents.batch_agent.learns
            self._metrics: Metrics = self._agents.stub.metrics()
            self._episodes = self._counted()
            self._measurements = self._measured()
            self._joiner = Joiner(self._episodes)
        return self._agents

    def open(self, hello: Hello) -> IntArray:
        """Return slots for the environments of a client; NoRoom if there are not enough.

        AgentError when an agent cannot be made for one of them, or fails when it is introduced;
        InvalidState when it refuses the environment.
        """
        environments = hello.environments
        agents = self.prepare()
        slots = self._environments.take(environments)
        try:
            self._open(slots, hello, agents)
        except MemoryError as error:
            raise NoRoom(f"there is no room for {environments} more environments") from error
        return slots

    def _open(self, slots: IntArray, hello: Hello, agents: Agents) -> None:
        """Let environments have ``slots``; whatever is raised, the slots are free again then."""
        agent = agents.batch_agent
        try:
            self._episodes.open(slots)
            agent.open(slots)
        except BaseException:
            self._environments.give_back(slots)
            raise
        try:
            introduced = self._environments.introduced(slots, hello, agents.first_seed)
            agent.connected(slots, introduced)
        except BaseException:
            self.close_slots(slots)
            raise

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone."""
        if len(slots) and self._agents is not None:
            self._agents.batch_agent.close_slots(slots)
            self._environments.give_back(slots)
            if self.environments == 0:
                self._joiner.forget()

    def ends_episode(self, request: Request) -> bool:
        """Return whether an episode ends with a request, or is given up."""
        return self._episodes.any_ends(request.slots, request.steps)

    def give_up(self, slots: IntArray) -> None:
        """Count the episodes that go on in ``slots`` as over."""
        self._episodes.give_up(slots)

    def store(self, metric: Metric) -> None:
        """Store a client's own metric, under a prefix that the service does not use."""
        self._metrics.scalar(self._of_client + metric.name, metric.y, metric.x)

    def note(self, slot: int, name: str, y: float) -> None:
        """Take a number of the episode in ``slot``; see ``Episodes``."""
        self._episodes.note(slot, name, y)

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
            raise self.rule.unsendable(error) from error

    def note_connected(self, connections: int) -> None:
        """Log now and then how many environments there are, on so many connections."""
        if self._agents is not None:
            self._measurements.note_connected(self.environments, connections)

    def close(self) -> None:
        """Store the metrics that are left and end the agents."""
        if self._agents is not None:
            self._episodes.close()
            self._measurements.close()
            self._agents.close()

    def _counted(self) -> Episodes:
        """Return the counter of episodes."""
        return Episodes(self._metrics, most_steps=self.limits.most_episode_steps)

    def _measured(self) -> Measurements:
        """Return the measurements of the worker."""
        return Measurements(self._metrics, self.is_shared, self.row)

    def _answer(self, requests: list[Request], arrived_at: float) -> Iterator[Answer | Refusal]:
        """Answer requests together; each for itself where one of them cannot be used.

        A refusal by the agent while it acts holds for all: their steps have been counted.
        """
        agents = self.prepare()
        if len(requests) > 1 and not agents.act_together:
            yield from self._answer_one_by_one(requests, arrived_at)
            return
        try:
            report = self._joiner.read(agents.batch_agent, requests)
        except (ProtocolError, AgentError) as error:
            if len(requests) > 1:
                yield from self._answer_one_by_one(requests, arrived_at)
            else:
                yield refusal(requests[0], error)
            return
        transitions = report.transitions
        scores = self._episodes.count(transitions)
        if self.learns and len(transitions.stepped):
            self.row.kept.add(TAKEN, len(transitions.stepped))
        try:
            actions = self._act(agents.batch_agent, report, arrived_at)
        except (ProtocolError, AgentError) as error:
            yield from (Refusal(request.session, error) for request in requests)
            return
        yield from answers_to(requests, transitions, actions, scores, self.rule)

    def _answer_one_by_one(
        self, requests: list[Request], arrived_at: float
    ) -> Iterator[Answer | Refusal]:
        for request in requests:
            yield from self._answer([request], arrived_at)

    def _act(self, agent: BatchAgentBase, report: Report, arrived_at: float) -> Actions:
        """Return actions [A]."""
        self._joiner.note(report.states)
        if self._look is not None and not self._look.take(
            report.transitions.rewards, report.states
        ):
            self._look = None
        began_at = time.monotonic()
        actions: Actions = agent.act(report.transitions, report.states, report.finals)
        self._measurements.add_evaluation(arrived_at, began_at, len(report.transitions.acting))
        return actions


class EvaluationResponder(Responder):
    """Answers environments that evaluate, with an evaluator of the agent of ``training``.

    They have no places among those that train, and their measurements are not stored: the worker's
    figures are of its training.
    """

    _of_client = OF_EVALUATING_CLIENT

    def __init__(self, training: Responder, evaluation: Evaluation) -> None:
        super().__init__(
            self._make_evaluator, training.is_shared, training.rule, training.row, training.limits
        )
        self._environments = Environments(None)
        self._training = training
        self._evaluation = evaluation

    def _make_evaluator(self) -> Agents:
        """Return an evaluator beside the agents of training; InvalidState if there is none."""
        agents = self._training.prepare()
        self._evaluator = agents.evaluator(self._evaluation)
        first_seed = seed_after(agents.first_seed, SEEDS // 2)
        return Agents(
            self._evaluator, agents.stub, agents.act_together, first_seed, borrows_stub=True
        )

    def _counted(self) -> Episodes:
        evaluator = self._evaluator
        return EvaluationEpisodes(
            self._metrics, lambda slot: evaluator.policies(slot)[0], self.limits.most_episode_steps
        )

    def _measured(self) -> Measurements:
        return Measurements(NullMetrics(), shared=False, row=self.row)


class Responders:
    """Finds the responder of a connection; evaluating ones are made with their first connection."""

    def __init__(self, training: Responder) -> None:
        self.training = training
        #: While there are none, ``training`` answers all.
        self._evaluating: dict[Evaluation, Responder] = {}

    @property
    def environments(self) -> int:
        """How many environments there are, evaluating ones included."""
        if not self._evaluating:  # asked for in each turn
            return self.training.environments
        return sum(each.environments for each in (self.training, *self._evaluating.values()))

    def of(self, evaluation: Evaluation | None) -> Responder:
        """Return the responder of connections with this evaluation; None without one."""
        if evaluation is None:
            return self.training
        if evaluation not in self._evaluating:
            self._evaluating[evaluation] = EvaluationResponder(self.training, evaluation)
        return self._evaluating[evaluation]

    def answer(self, requests: list[Request], arrived_at: float) -> Iterator[Answer | Refusal]:
        """Yield the answer to each request; the requests of one responder are joined."""
        if not self._evaluating:
            return self.training.answer(requests, arrived_at)
        by_evaluation: dict[Evaluation | None, list[Request]] = {}
        for request in requests:
            by_evaluation.setdefault(request.session.evaluation, []).append(request)
        return itertools.chain.from_iterable(
            self.of(evaluation).answer(together, arrived_at)
            for evaluation, together in by_evaluation.items()
        )

    def close(self) -> None:
        """Store the metrics that are left and end all agents, evaluators first."""
        for evaluating in self._evaluating.values():
            evaluating.close()
        self.training.close()


def responders_of(
    settings: WorkerSettings, make_agents: Callable[[], Agents], is_shared: bool, row: WorkerRow
) -> Responders:
    """Return the responders of a worker; their arguments are explained by ``Responder``."""
    rule = ActionRule(settings.config.action_space(), settings.algorithm_name)
    look = first_look(settings.doubts, settings.config, learns=settings.exploitation is None)
    return Responders(Responder(make_agents, is_shared, rule, row, settings.limits, look))
