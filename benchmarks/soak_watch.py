"""What is seen of the soak while it goes on."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from soak_client import ANSWERED
from soak_leaks import zombies
from soak_ledger import on_the_way, reached
from soak_processes import Run
from soak_rollbacks import Look
from soak_training import Training

#: After a fault, the parameter server counts so many steps more, and each client and each actor so
#: many answers.
_MORE_STEPS, _MORE_ANSWERS = 30, 5

_LOOK_S = 0.5

#: All is quiet when nothing has changed for so long.
_QUIET_S = 2.0


@dataclass(frozen=True)
class Mark:
    """How far all was at a moment."""

    shard: Run
    counted: float
    learner: Run
    updates: float
    answered: list[int]


@dataclass(frozen=True)
class Recovery:
    """How long the training took to go on after a fault had ended; None if it did not."""

    fault: str
    seconds: float | None


class Watch:
    """Looks at a training twice a second."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self.recoveries: list[Recovery] = []
        self._looks: list[tuple[Run, Look]] = []
        #: As the parameter server itself says it, at the end.
        self.global_step = 0
        self.zombies: list[str] = []
        #: Ports that show an old certificate.
        self.outdated: list[str] = []
        self._look_at = 0.0
        self._quiet_since: tuple[float, object] = (0.0, None)

    def look(self) -> None:
        """Take note of the global step, if it is time to."""
        now = time.monotonic()
        if now >= self._look_at and self._training.of("shard")[0].runs:
            self._look_at = now + _LOOK_S
            run = self._training.of("shard")[0].run
            self._looks.append((run, Look(now, reached(run))))

    def looks_at(self, run: Run) -> list[Look]:
        """Return what was seen of a run of the first shard."""
        return [look for of, look in self._looks if of is run]

    def now(self) -> Mark:
        """Return how far all is."""
        shard, learner = self._training.of("shard")[0].run, self._training.of("learner")[0].run
        return Mark(
            shard,
            shard.totals().get("counted", 0.0),
            learner,
            self._updates() or 0.0,
            self._answered(),
        )

    def goes_on_since(self, mark: Mark) -> Callable[[], bool]:
        """Return whether all of it has gone on."""

        def goes_on() -> bool:
            training = self._training
            shard, learner = training.of("shard")[0].run, training.of("learner")[0].run
            counted = mark.counted if shard is mark.shard else 0.0
            updates = mark.updates if learner is mark.learner else 0.0
            return (
                shard.totals().get("counted", 0.0) >= counted + _MORE_STEPS
                and all(
                    now >= before + _MORE_ANSWERS
                    for now, before in zip(self._answered(), mark.answered, strict=True)
                )
                and (self._updates() or 0.0) > updates
                and all(each.is_ready for each in training.processes)
            )

        return goes_on

    def note_recovery(self, fault: str, seconds: float, has_recovered: bool) -> None:
        """Take note of what followed a fault."""
        self.recoveries.append(Recovery(fault, seconds if has_recovered else None))

    def is_quiet(self) -> bool:
        """Return whether nothing is on its way, and has not been for a while."""
        now, shard = time.monotonic(), self._training.of("shard")[0].run
        state = (on_the_way(self._training), reached(shard))
        if state != self._quiet_since[1]:
            self._quiet_since = now, state
        return state[0] == 0 and now - self._quiet_since[0] > _QUIET_S

    def note_end(self) -> bool:
        """Take note of how all is when it is quiet, before it is stopped; say if it was possible.

        Where a machine has much to do, the parameter server may take a while to answer.
        """
        shard = self._training.of("shard")[0]
        global_step = self._training.figure(shard.name, "relaax_global_step")
        if global_step is None:
            return False
        self.global_step = int(global_step)
        self.zombies = zombies(self._training.processes)
        self.outdated = self._training.access.outdated(self._training.operators.values())
        return True

    def _answered(self) -> list[int]:
        """Return the steps of each client and each actor to which an action has come."""
        training = self._training
        return [each[ANSWERED] for each in [*training.counts, *training.actor_counts]]

    def _updates(self) -> float | None:
        return self._training.figure("learner 1", "relaax_learner_updates_total")
