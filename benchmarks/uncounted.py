"""How far the global step can be behind the steps that environments have taken."""

from dataclasses import dataclass
from typing import Any

from launch import AUTO, CONNECTION, Workers
from learning_cases import Case

from relaax.learning.on_policy import ActorCriticSettings
from relaax.processes.cgroups import usable_cores

#: How many steps may wait in a worker before it waits itself (``ReplayWriter``).
_DELIVERED_LATER = 256

#: A learner counts the steps that it was given so often, and a little later (``TrainingWatch``).
_COUNTED_LATER_S = 0.3


@dataclass(frozen=True)
class Uncounted:
    """How many steps can have been taken that the global step does not count yet."""

    steps: int
    #: So long ago the global step may have been counted.
    seconds: float = 0.0

    def most_at(self, counted: int, seconds: float) -> int:
        """Return the most steps that can have been taken ``seconds`` after the beginning.

        The rate is that of the training so far: the learner slows it down, once it has begun.
        """
        return counted + self.steps + int(self.seconds * counted / max(seconds, self.seconds))


def most_uncounted(section: dict[str, Any], case: Case, workers: Workers | None) -> Uncounted:
    """Return how many steps can have been taken that the global step does not count yet.

    ``workers`` is None where workers learn themselves.
    """
    if workers is None:
        return Uncounted(_in_rollouts(section, case))
    return Uncounted(_on_their_way(case, workers), _COUNTED_LATER_S)


def _in_rollouts(section: dict[str, Any], case: Case) -> int:
    """Return the most steps that DA3C's workers have not learnt from, and so not counted.

    They are in rollouts that are filled, that wait for an update, or, where acting goes on
    meanwhile, that are learnt from.
    """
    defaults = {key: field.default for key, field in ActorCriticSettings.model_fields.items()}
    chosen = {**defaults, **section}
    waiting = 2 * chosen["rollouts_per_update"]
    if chosen["wait_for_learning"] == "always":
        waiting = max(chosen["least_rollouts_per_update"], case.environments)
    return int((waiting + case.environments) * chosen["episode_len"])


def _on_their_way(case: Case, workers: Workers) -> int:
    """Return the most steps that workers have not delivered to the learner, which counts them.

    When that many wait, the step of each environment that follows is still taken.
    """
    connections = -(-case.environments // case.per_connection)
    kinds: dict[Workers, int] = {CONNECTION: connections, AUTO: usable_cores()}
    count = min(connections, int(kinds.get(workers, workers)))
    return count * _DELIVERED_LATER + 2 * case.environments
