"""The keys of ACER's section in the YAML file."""

from collections.abc import Mapping
from math import ceil, sqrt
from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from relaax.algorithm_base.config_base import require_effect
from relaax.learning.filters import FilterSettings
from relaax.learning.on_policy import ContinuousSettings, DiscreteSettings
from relaax.learning.on_policy.continuous import Actions
from relaax.learning.on_policy.policy_settings import RolloutSettings


class AcerSettings(RolloutSettings, FilterSettings):
    """The keys of the ``algorithm:`` section that do not depend on the kind of actions."""

    #: Whether an action is an array of numbers.
    continuous: bool = False

    learner: Literal["process"] = "process"
    #: Steps of one rollout.
    episode_len: PositiveInt = 20
    #: Rollouts of one update, fresh ones or replayed ones.
    rollouts_per_update: PositiveInt = 8
    #: Updates from replay for each update from fresh rollouts: the mean of a Poisson distribution.
    replay_ratio: float = Field(4.0, ge=0, le=100)
    #: Steps that are stored; the oldest make room for new ones.
    replay_size: PositiveInt = 50_000
    initialization: Literal["uniform", "orthogonal"] = "orthogonal"

    #: Adam's, for all networks.
    learning_rate: PositiveFloat = 7e-4
    #: The longest gradient of a network; longer ones are scaled down. None leaves them.
    gradient_norm_clipping: PositiveFloat | None = 10.0
    entropy_beta: float = Field(0.001, ge=0)
    #: Weight of the critic's loss beside the policy's.
    value_loss_weight: PositiveFloat = 0.5
    #: Importance weights of actions are cut to it, and a critic stands in for the rest.
    largest_weight: float = Field(10.0, ge=1)
    #: How far an update may move each distribution from the average policy's, to first order in
    #: nats; None: without a trust region.
    trust_region: PositiveFloat | None = 1.0
    #: How much of the average policy each update keeps.
    average_decay: float = Field(0.99, ge=0, lt=1)

    @model_validator(mode="after")
    def _stores_a_replayed_batch(self) -> "AcerSettings":
        if self.replay_size < (needed := self.replayed_rollouts * self.episode_len):
            raise ValueError(
                f"replay_size: {self.replay_size} steps are fewer than the {needed} of the "
                f"{self.replayed_rollouts} rollouts that are drawn at once, for replay_ratio "
                f"({self.replay_ratio:g}) and rollouts_per_update ({self.rollouts_per_update})"
            )
        return self

    @model_validator(mode="after")
    def _follows_what_is_used(self) -> "AcerSettings":
        if self.trust_region is None:
            require_effect(self, ("average_decay",), "trust_region")
        return self

    @property
    def rollouts_of_batch(self) -> int:
        """Rollouts that are learnt from together."""
        return self.rollouts_per_update

    @property
    def replayed_rollouts(self) -> int:
        """Rollouts that are drawn from replay for each fresh batch; 0 without replay.

        They are enough for updates up to two standard deviations above the mean.
        """
        return ceil(self.replay_ratio + 2 * sqrt(self.replay_ratio)) * self.rollouts_per_update


class DiscreteAcer(AcerSettings, DiscreteSettings):
    """The keys of a section with discrete actions: one choice."""

    #: Number of discrete actions.
    action_size: PositiveInt
    action_bits: None = None


class ContinuousAcer(AcerSettings, ContinuousSettings):
    """The keys of a section with continuous actions."""

    #: ``fixed``: the standard deviations stay what they are at first.
    sigma: Literal["state", "free", "fixed"] = "fixed"  # type: ignore[assignment]
    initial_sigma: float = Field(0.3, gt=0, allow_inf_nan=False)
    largest_weight: float = Field(5.0, ge=1)
    average_decay: float = Field(0.995, ge=0, lt=1)
    #: Actions whose advantages are averaged in each state: the paper's n.
    dueling_samples: PositiveInt = 5

    @model_validator(mode="after")
    def _changes_its_entropy(self) -> "ContinuousAcer":
        if self.sigma == "fixed":
            require_effect(self, ("entropy_beta",), "sigma: free or state")
        return self

    @field_validator("lstm")
    @classmethod
    def _has_no_memory(cls, lstm: bool) -> bool:
        if lstm:
            raise ValueError("the advantages of continuous actions are those in a state: no lstm")
        return lstm

    @property
    def actions(self) -> Actions:
        """The description of actions for the rest of the algorithm."""
        if self.sigma != "fixed":
            return super().actions
        return self.model_copy(update={"sigma": "free"}).actions


def settings_of(section: Mapping[str, Any]) -> DiscreteAcer | ContinuousAcer:
    """Return the settings of a section; ``continuous`` says of which kind they are."""
    kind = ContinuousAcer if section.get("continuous") else DiscreteAcer
    return kind.model_validate(dict(section))
