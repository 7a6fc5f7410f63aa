"""The stage of a curriculum: it moves on when all conditions hold of an evaluated version."""

import logging
from collections.abc import Mapping

from relaax.configuration.curriculum import VERSION, Curriculum
from relaax.errors import ConfigurationError
from relaax.parameters.database import DatabaseWriter
from relaax.parameters.process.conditions import Checked, checked
from relaax.parameters.stage import Stage
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)


class Stages:
    """The stages of a curriculum. The present one is in the database, and outlives the process.

    What conditions know of earlier versions does not: it begins anew with each stage, and with each
    start. ConfigurationError where the database has a stage that the curriculum does not have.
    """

    def __init__(self, curriculum: Curriculum, database: DatabaseWriter) -> None:
        self._curriculum = curriculum
        self._database = database
        self._complaint = RepeatedWarning(_log)
        known = database.stage_of(curriculum.name)
        if known is not None and known not in curriculum.stages:
            raise ConfigurationError(
                f"{database.location()} is in the stage {known!r} of the curriculum "
                f"{curriculum.name!r}, which has {', '.join(curriculum.stages)}"
            )
        number = 0 if known is None else curriculum.stages.index(known)
        #: Replaced as a whole, for other threads.
        self.now = Stage(number, curriculum.stages[number])
        self._conditions = self._anew()
        #: Whether the present stage is over, and whether the last one is.
        self._is_over = self._has_ended = False

    def submit(self, version: int, means: Mapping[str, float]) -> None:
        """Ask the conditions about a version that was evaluated in the present stage."""
        numbers = {**means, VERSION: float(version)}
        try:
            met = [each.is_met(numbers) for each in self._conditions]  # each takes each version
            self._is_over = all(met)
        except ConfigurationError as error:
            self._complaint.say(f"the stage {self.now.name!r} cannot end: {error}")

    def advance(self) -> None:
        """Begin the next stage if the present one is over; CheckpointError as of the database."""
        if not self._is_over or self._has_ended:
            return
        stages, number = self._curriculum.stages, self.now.number + 1
        if number == len(stages):
            self._has_ended = True
            self._say("all stages are over")
            return
        self._database.set_stage(self._curriculum.name, stages[number])
        self.now = Stage(number, stages[number])
        self._conditions, self._is_over = self._anew(), False
        self._say(f"stage {self.now.name}")

    def _say(self, text: str) -> None:
        print(f"curriculum {self._curriculum.name}: {text}", flush=True)

    def _anew(self) -> list[Checked]:
        return [checked(each) for each in self._curriculum.conditions]
