"""Which environments of a writer are about to begin a rollout, as the server counts their rows."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import GAP


class RolloutCounts:
    """Counts the rows of each environment in rollouts of ``length``."""

    def __init__(self, length: int) -> None:
        self._length = length
        #: By environment: its rows since the last gap.
        self._rows: Counter[int] = Counter()
        #: Environments whose present rollout has been admitted.
        self._admitted: set[int] = set()

    def beginning(self, environments: Iterable[int]) -> list[int]:
        """Return those of the environments whose next action needs an admission."""
        return [each for each in environments if each not in self._admitted]

    def admit(self, environments: Iterable[int]) -> None:
        """Note that the present rollouts of environments are admitted."""
        self._admitted.update(environments)

    def release(self, environments: Iterable[int]) -> None:
        """Note that environments begin anew."""
        for each in environments:
            self._rows.pop(each, None)
            self._admitted.discard(each)

    def add(self, steps: StepBatch) -> None:
        """Count steps that will be sent."""
        for environment in np.unique(steps.slots).tolist():
            flags = steps.flags[steps.slots == environment]
            gaps = np.flatnonzero(flags & GAP)
            before = self._rows[environment]
            if len(gaps):
                before, flags = 0, flags[gaps[-1] :]
            after = before + len(flags)
            self._rows[environment] = after
            if after // self._length > before // self._length:
                self._admitted.discard(environment)

    def restart(self, steps: Iterable[StepBatch]) -> None:
        """Count anew: the server knows nothing, and gets these steps first."""
        self._rows.clear()
        for each in steps:
            self.add(each)
