"""The responders of a worker: one for training, one for each kind of evaluation."""

import time
from collections.abc import Callable, Iterator

from relaax.algorithm_base import EvaluatedPolicy, Evaluation, NullMetrics
from relaax.configuration.first_look import FirstLook
from relaax.server.rlx_server.limits import NO_LIMITS, ClientLimits
from relaax.server.rlx_server.tally import WorkerRow
from relaax.server.rlx_server.worker.action_rule import ActionRule
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.answers import Answer, Refusal
from relaax.server.rlx_server.worker.environments import Environments, Episodes, FloatArray
from relaax.server.rlx_server.worker.measurements import Measurements
from relaax.server.rlx_server.worker.requests import Request
from relaax.server.rlx_server.worker.responder import Responder
from relaax.server.rlx_server.worker.session import Session
from relaax.server.rlx_server.worker.settings import SEEDS, seed_after
from relaax.steps import IntArray, Steps
from relaax.telemetry.metrics import (
    EVALUATION_REWARD,
    EVALUATION_REWARD_OF,
    OF_EVALUATING_CLIENT,
    Metrics,
)


class EvaluationEpisodes(Episodes):
    """Stores the score of each episode that has come to its end, for the policy that played it.

    An episode that is given up, or whose connection is lost, has no score. ``policy_of`` returns
    the policy of a slot's episode, if it is known.
    """

    def __init__(
        self,
        metrics: Metrics,
        policy_of: Callable[[IntArray], EvaluatedPolicy | None],
        most_steps: int | None = None,
    ) -> None:
        super().__init__(metrics, most_steps=most_steps)
        self._policy_of = policy_of

    def _store(self, slot: IntArray, reward: float, length: int, seconds: float) -> None:
        policy = self._policy_of(slot)
        step = None if policy is None else policy.global_t
        self._metrics.scalar(EVALUATION_REWARD, reward, step)
        self._metrics.scalar("evaluation/length", length, step)
        if policy is not None and policy.version is not None:
            self._metrics.scalar(EVALUATION_REWARD_OF, reward, policy.version)

    def _note_rewards(self, rewards: FloatArray) -> None:
        """Do nothing: metrics of each step are those of the training."""

    def _give_up(self, slots: IntArray) -> None:
        self._is_running[slots] = False


class EvaluationResponder(Responder):
    """Answers environments that evaluate, with an evaluator of the agent of ``training``.

    Its measurements are not stored: the worker's figures are those of its training.
    """

    _of_client = OF_EVALUATING_CLIENT

    def __init__(self, training: Responder, evaluation: Evaluation) -> None:
        super().__init__(
            self._make_evaluator, training.is_shared, training.rule, training.row, training.limits
        )
        self._training = training
        self._evaluation = evaluation

    def _make_evaluator(self) -> Agents:
        """Return an evaluator beside the agents of training; InvalidState if there is none."""
        agents = self._training.prepare()
        self._evaluator = agents.batch_agent.evaluator(self._evaluation)
        first_seed = seed_after(agents.first_seed, SEEDS // 2)
        return Agents(self._evaluator, agents.stub, agents.act_together, first_seed)

    def _counts(self, agents: Agents) -> tuple[Episodes, Measurements]:
        evaluator = self._evaluator
        episodes = EvaluationEpisodes(
            agents.stub.metrics(),
            lambda slot: evaluator.policies(slot)[0],
            self.limits.most_episode_steps,
        )
        return episodes, Measurements(NullMetrics(), shared=False, row=self.row)

    def _count_taken(self, steps: int) -> None:
        """Do nothing: these steps are not delivered."""

    def _numbered(self, row: WorkerRow) -> Environments:
        """Number environments that have no places among those that train."""
        return Environments(None)

    def _end(self, agents: Agents) -> None:
        """Close the evaluator alone: the rest is the training's."""
        agents.batch_agent.close()


class Responders:
    """Finds the responder of a connection; evaluating ones are made with their first connection.

    The arguments are those of a ``Responder``.
    """

    def __init__(
        self,
        make_agents: Callable[[], Agents],
        is_shared: bool,
        rule: ActionRule,
        row: WorkerRow,
        limits: ClientLimits = NO_LIMITS,
        look: FirstLook | None = None,
    ) -> None:
        self.training = Responder(make_agents, is_shared, rule, row, limits, look)
        #: The evaluating responders; while there are none, ``training`` answers all.
        self.evaluating: dict[Evaluation, Responder] = {}

    @property
    def environments(self) -> int:
        """How many environments there are, evaluating ones included."""
        return sum(each.environments for each in self._all())

    def of(self, evaluation: Evaluation | None) -> Responder:
        """Return the responder of connections with this evaluation; None without one."""
        if evaluation is None:
            return self.training
        if evaluation not in self.evaluating:
            self.evaluating[evaluation] = EvaluationResponder(self.training, evaluation)
        return self.evaluating[evaluation]

    def answer(self, requests: list[Request], arrived_at: float) -> Iterator[Answer | Refusal]:
        """Yield the answer to each request; the requests of one responder are joined."""
        by_evaluation: dict[Evaluation | None, list[Request]] = {}
        for request in requests:
            by_evaluation.setdefault(request.session.evaluation, []).append(request)
        for evaluation, together in by_evaluation.items():
            yield from self.of(evaluation).answer(together, arrived_at)

    def answer_alone(self, session: Session, steps: Steps) -> bytes:
        """Return the answer to the steps of one client.

        An error of the client, or of its agent, is raised: the session is over then.
        """
        (answer,) = self.answer([Request(session, steps)], time.monotonic())
        if isinstance(answer, Refusal):
            raise answer.error
        return self.training.encoded(answer)

    def close(self) -> None:
        """Store the metrics that are left and end all agents, evaluators first."""
        for evaluating in self.evaluating.values():
            evaluating.close()
        self.training.close()

    def _all(self) -> list[Responder]:
        return [self.training, *self.evaluating.values()]
