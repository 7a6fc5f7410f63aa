"""The environments of a worker that evaluate: apart from all that is learnt from and counted."""

from collections.abc import Callable

from relaax.algorithm_base import EvaluatedPolicy, Evaluation, NullMetrics
from relaax.metrics import EVALUATION_REWARD, EVALUATION_REWARD_OF, OF_EVALUATING_CLIENT, Metrics
from relaax.server.rlx_server.limits import NO_LIMITS, ClientLimits
from relaax.server.rlx_server.tally import WorkerRow
from relaax.server.rlx_server.worker.action_rule import ActionRule
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.episodes import Episodes, FloatArray
from relaax.server.rlx_server.worker.measurements import Measurements
from relaax.server.rlx_server.worker.responder import Responder
from relaax.server.rlx_server.worker.settings import SEEDS, seed_after
from relaax.steps import IntArray


class EvaluationEpisodes(Episodes):
    """Stores the score of each episode that has come to its end, for the policy that played it.

    One that is given up, or whose connection is lost, has no score. ``policy_of`` returns what the
    episode of a slot is played with, if that is known.
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
        """Do nothing: what is stored of each step is the training's."""

    def _give_up(self, slots: IntArray) -> None:
        self._is_running[slots] = False


class EvaluationResponder(Responder):
    """Answers environments that evaluate, with an evaluator of the agent of ``training``.

    What it measures is not stored: the worker's figures are those of its training.
    """

    _of_client = OF_EVALUATING_CLIENT

    def __init__(
        self,
        training: Responder,
        evaluation: Evaluation,
        is_shared: bool,
        rule: ActionRule,
        row: WorkerRow,
        limits: ClientLimits = NO_LIMITS,
    ) -> None:
        super().__init__(self._make_evaluator, is_shared, rule, row, limits)
        self._training = training
        self._evaluation = evaluation

    def _make_evaluator(self) -> Agents:
        """Return an evaluator beside the agents of training; InvalidState where there is none."""
        agents = self._training.prepare()
        self._evaluator = agents.batch_agent.evaluator(self._evaluation)
        first_seed = seed_after(agents.first_seed, SEEDS // 2)
        return Agents(self._evaluator, agents.stub, agents.act_together, first_seed)

    def _counts(self, agents: Agents) -> tuple[Episodes, Measurements]:
        evaluator = self._evaluator
        episodes = EvaluationEpisodes(
            agents.stub.metrics(),
            lambda slot: evaluator.policies(slot)[0],
            self._limits.most_episode_steps,
        )
        return episodes, Measurements(NullMetrics(), shared=False, row=self._row)

    def _count_taken(self, steps: int) -> None:
        """Do nothing: these steps are not delivered."""

    def _end(self, agents: Agents) -> None:
        """Close the evaluator alone: the rest is the training's."""
        agents.batch_agent.close()
