"""The keys that the section of every actor-critic has in the YAML file."""

from typing import Any, Literal

from pydantic import PositiveFloat, PositiveInt, field_validator, model_validator

from relaax.algorithm_base import Section
from relaax.learning.actor_critic.policy_settings import PolicySettings


class VTraceSection(Section):
    """Correction for policy lag; Espeholt et al. 2018, equation (1)."""

    #: The paper's rho-bar: which policy is evaluated.
    clip_rho: PositiveFloat = 1.0
    #: The paper's c-bar: how far a correction reaches back.
    clip_c: PositiveFloat = 1.0


class ActorCriticSettings(PolicySettings):
    """The keys of the YAML's ``algorithm:`` section that do not depend on the kind of actions.

    Derive an algorithm's settings from it: they add what describes its actions, and may give other
    defaults. ``passes`` above 1 ask for ``policy_clip`` or ``vtrace``.
    """

    #: Learn with V-trace from rollouts of older parameters; None takes them as they are.
    vtrace: VTraceSection | None = None
    #: Rollouts that one update is made of, at most.
    rollouts_per_update: PositiveInt = 32
    #: Rollouts that one update is made of, at least: full rollouts wait for others.
    least_rollouts_per_update: PositiveInt = 1
    #: Whether acting waits for learning where many environments share a learner: ``always``, until
    #: the rollouts that have become full are learnt from; ``if_behind``, while a whole update is
    #: queued; ``never``, where the oldest rollouts are dropped instead.
    wait_for_learning: Literal["always", "if_behind", "never"] = "if_behind"
    #: Learn from what happens; without it the parameters are served as they are.
    learn: bool = True

    @model_validator(mode="after")
    def _corrects_once(self) -> "ActorCriticSettings":
        if self.policy_clip is not None and self.vtrace is not None:
            raise ValueError("policy_clip and vtrace exclude each other")
        if self.passes > 1 and self.policy_clip is None and self.vtrace is None:
            raise ValueError(
                "passes above 1 need policy_clip (0.2, for example) or vtrace: true, since the "
                "first pass already changes the policy that chose the actions"
            )
        return self

    @model_validator(mode="after")
    def _gathers_what_fits(self) -> "ActorCriticSettings":
        least, most = self.least_rollouts_per_update, self.rollouts_per_update
        if least > most and self.wait_for_learning != "always":
            raise ValueError(
                f"least_rollouts_per_update {least} is above rollouts_per_update {most}; this is "
                "possible only with wait_for_learning: always"
            )
        return self

    @field_validator("vtrace", mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        """Take ``true`` for the paper's own numbers and ``false`` for none."""
        return ({} if value else None) if isinstance(value, bool) else value
