"""The responders of a worker: one for what is learnt from, one for each kind of evaluation."""

from collections.abc import Callable, Iterator

from relaax.algorithm_base import Evaluation
from relaax.server.rlx_server.limits import NO_LIMITS, ClientLimits
from relaax.server.rlx_server.tally import WorkerRow
from relaax.server.rlx_server.worker.action_rule import ActionRule
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.evaluations import EvaluationResponder
from relaax.server.rlx_server.worker.responder import Answer, Refusal, Request, Responder


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
    ) -> None:
        self.training = Responder(make_agents, is_shared, rule, row, limits)
        self._limits = limits
        self._row = row
        self._is_shared = is_shared
        self._rule = rule
        #: Those that have been made; while there are none, ``training`` answers all.
        self.evaluating: dict[Evaluation, Responder] = {}

    @property
    def environments(self) -> int:
        """How many environments there are, those that evaluate among them."""
        return sum(each.environments for each in self._all())

    def of(self, evaluation: Evaluation | None) -> Responder:
        """Return the responder of connections that evaluate so; None for those that do not."""
        if evaluation is None:
            return self.training
        if evaluation not in self.evaluating:
            self.evaluating[evaluation] = EvaluationResponder(
                self.training, evaluation, self._is_shared, self._rule, self._row, self._limits
            )
        return self.evaluating[evaluation]

    def answer(self, requests: list[Request], arrived_at: float) -> Iterator[Answer | Refusal]:
        """Yield what each request is answered with; those of one responder are joined."""
        by_evaluation: dict[Evaluation | None, list[Request]] = {}
        for request in requests:
            by_evaluation.setdefault(request.connection.evaluation, []).append(request)
        for evaluation, together in by_evaluation.items():
            yield from self.of(evaluation).answer(together, arrived_at)

    def close(self) -> None:
        """Store the metrics that are left and end all agents, evaluators first."""
        for evaluating in self.evaluating.values():
            evaluating.close()
        self.training.close()

    def _all(self) -> list[Responder]:
        return [self.training, *self.evaluating.values()]
