"""How long a version of a policy is evaluated before a newer one takes its place."""

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, field_validator

from relaax.configuration.curriculum import Curriculum
from relaax.processes.identifiers import LATEST


class EvalRule(BaseModel):
    """The keys of a tag in ``--eval-managers``; seed 002, "Evaluation"."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    #: The episodes of this stream alone count; "": those that were reported without one.
    eval_sample_stream: str = ""
    #: A newer version is evaluated after so many episodes of one, and after so many seconds.
    eval_games_per_version: PositiveInt = 100
    eval_time_per_version_seconds: PositiveFloat | None = None
    #: Where newer versions are. ``latest``: the newest version that is tagged, or else the newest.
    eval_target_tag: str = LATEST
    #: Stages of environments, which go by the means of evaluated versions.
    curriculum_config: Curriculum | None = None

    @field_validator("curriculum_config")
    @classmethod
    def _ends_stages(cls, curriculum: Curriculum | None) -> Curriculum | None:
        if curriculum is not None and not curriculum.conditions:
            raise ValueError("conditions: is empty, so that each version would end a stage")
        return curriculum
