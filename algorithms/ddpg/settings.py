"""The keys of DDPG's section in the YAML file."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base import Section
from relaax.algorithm_base.config_base import require_effect
from relaax.learning.off_policy import ContinuousSettings


class NoiseSection(Section):
    """Noise that makes actors try other actions. Sizes are parts of half the range of actions."""

    #: Independent, or correlated in time (Ornstein and Uhlenbeck); or on the policy's parameters.
    type: Literal["normal", "ou", "parameters"] = "normal"
    #: The standard deviation of each step's change, or of each parameter's.
    sigma: float = Field(0.1, ge=0)
    #: Let the deviation on parameters change, so that actions are so far from those without.
    target: PositiveFloat | None = None
    #: How fast correlated noise returns to 0, for each unit of time.
    theta: PositiveFloat = 0.15
    #: Time between two steps.
    dt: PositiveFloat = 1.0
    #: Environments have sigmas in so many sizes, from sigma / rungs to sigma.
    rungs: PositiveInt = 1

    @model_validator(mode="after")
    def _perturbs(self) -> "NoiseSection":
        if self.target is not None and self.type != "parameters":
            raise ValueError("target needs type: parameters")
        if self.type != "ou":
            require_effect(self, ("theta", "dt"), "type: ou")
        if self.type == "parameters":
            require_effect(self, ("rungs",), "type: normal or ou")
        return self


class Settings(ContinuousSettings):
    """The keys of the ``algorithm:`` section."""

    #: TD3: twin critics, smoothed targets and a policy that learns at every second update.
    twin: bool = False
    #: Updates of the critics for each of the policy; None: 2 with ``twin``, else 1.
    policy_delay: PositiveInt | None = None
    #: Standard deviation of the noise on actions behind a step; None: 0.2 with ``twin``, else 0.
    target_noise: float | None = Field(None, ge=0)
    #: It is cut to this.
    target_noise_clip: PositiveFloat = 0.5
    #: Part of the way that targets follow the networks: 1 copies them.
    target_rate: float = Field(0.005, gt=0, le=1)
    #: Updates from one such move to the next; None: those of ``policy_delay``.
    target_every: PositiveInt | None = None
    policy_learning_rate: PositiveFloat = 1e-3
    critic_learning_rate: PositiveFloat = 1e-3
    #: Noise that makes actors try other actions.
    exploration: NoiseSection = NoiseSection.model_validate({})

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, values: Any) -> Any:
        """Give the keys that depend on ``twin`` and other keys their values."""
        if not isinstance(values, dict):
            return values
        is_twin = values.get("twin") is True
        filled = {"policy_delay": 2 if is_twin else 1, "target_noise": 0.2 if is_twin else 0.0}
        given = {
            key: value for key, value in values.items() if value is not None or key not in filled
        }
        return filled | given

    @model_validator(mode="after")
    def _cuts_noise(self) -> "Settings":
        if not self.target_noise:
            require_effect(self, ("target_noise_clip",), "target_noise, or twin: true")
        return self

    @model_validator(mode="after")
    def _learns_all_at_once(self) -> "Settings":
        if self.learners is not None and self.policy_delay != 1:
            raise ValueError(
                "learners: several learners move the policy at every update: set policy_delay: 1"
            )
        return self

    @model_validator(mode="after")
    def _moves_the_policy(self) -> "Settings":
        if self.policy_delay is not None and self.policy_delay > self.most_updates():
            raise ValueError(
                f"policy_delay: {self.policy_delay} updates are more than the "
                f"{self.most_updates():,.0f} of the whole training: the policy would never learn"
            )
        return self

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from super().doubts()
        yield from self.doubts_of_target(self.target_every or 1)

    @property
    def critics(self) -> int:
        """How many critics there are."""
        return 2 if self.twin else 1
