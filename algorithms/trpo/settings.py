"""The keys of TRPO's section in the YAML file."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base.config_base import require_effect
from relaax.learning.filters import FilterSettings
from relaax.learning.on_policy import ContinuousSettings, DiscreteSettings
from relaax.learning.on_policy.policy_settings import RolloutSettings

#: The keys of each optimizer alone.
KEYS_OF = {
    "conjugate_gradients": (
        "conjugate_steps",
        "damping",
        "line_search_steps",
        "line_search_factor",
        "value_learning_rate",
        "value_passes",
        "value_minibatches",
    ),
    "lbfgs": ("lbfgs_iterations", "kl_penalty", "kl_cutoff", "value_mixing"),
}


class TrpoSettings(RolloutSettings, FilterSettings):
    """The keys of the ``algorithm:`` section that do not depend on the kind of actions."""

    #: Whether an action is an array of numbers.
    continuous: bool = False

    learner: Literal["process"] = "process"
    #: Steps of one rollout.
    episode_len: PositiveInt = 128
    #: Rollouts that are learnt from together.
    rollouts_per_batch: PositiveInt = 16
    initialization: Literal["uniform", "orthogonal"] = "orthogonal"
    #: Lambda of the advantages: 1 for whole returns, less to trust the values more.
    trace_decay: float = Field(0.95, ge=0, le=1)

    #: ``conjugate_gradients``: a trust region, as in the paper; ``lbfgs``: PPO with L-BFGS, where a
    #: penalty keeps the policy near.
    optimizer: Literal["conjugate_gradients", "lbfgs"] = "conjugate_gradients"
    #: How far one batch moves the policy, the mean KL divergence in nats: at most, or with
    #: ``lbfgs`` about as far.
    kl_target: PositiveFloat = 0.01
    #: Steps of the conjugate gradients that find the direction.
    conjugate_steps: PositiveInt = 10
    #: Added to the diagonal of the Fisher matrix, so that it can be inverted.
    damping: PositiveFloat = 0.1
    #: How often the step is made shorter before the batch is given up, and by how much each time.
    line_search_steps: PositiveInt = 10
    line_search_factor: float = Field(0.8, gt=0, lt=1)

    #: Adam's, for the values.
    value_learning_rate: PositiveFloat = 1e-3
    #: How often the values are learnt from each batch.
    value_passes: PositiveInt = 10
    #: Into how many updates of the values the rollouts of each pass are divided at random.
    value_minibatches: PositiveInt = 8

    #: Steps of L-BFGS, for the policy and for the values.
    lbfgs_iterations: PositiveInt = 25
    #: Weight of the KL divergence at first; it follows ``kl_target``.
    kl_penalty: PositiveFloat = 1.0
    #: Weight of the squared excess over twice ``kl_target``.
    kl_cutoff: float = Field(1000.0, ge=0)
    #: The part of the returns in the values' targets; the rest is what the values were.
    value_mixing: float = Field(0.1, gt=0, le=1)

    @model_validator(mode="after")
    def _has_keys_of_its_optimizer(self) -> "TrpoSettings":
        for optimizer, keys in KEYS_OF.items():
            if optimizer != self.optimizer:
                require_effect(self, keys, f"optimizer: {optimizer}")
        return self

    @model_validator(mode="after")
    def _divides_its_rollouts(self) -> "TrpoSettings":
        if self.optimizer == "lbfgs":
            return self
        if self.rollouts_per_batch % self.value_minibatches:
            raise ValueError(
                f"value_minibatches: the {self.rollouts_per_batch} rollouts of a batch "
                f"(rollouts_per_batch) are not divided evenly into {self.value_minibatches}"
            )
        return self

    @property
    def rollouts_of_batch(self) -> int:
        """Rollouts that are learnt from together."""
        return self.rollouts_per_batch


class DiscreteTrpo(TrpoSettings, DiscreteSettings):
    """The keys of a section with discrete actions."""


class ContinuousTrpo(TrpoSettings, ContinuousSettings):
    """The keys of a section with continuous actions."""

    sigma: Literal["state", "free"] = "free"


def settings_of(section: Mapping[str, Any]) -> DiscreteTrpo | ContinuousTrpo:
    """Return the settings of a section; ``continuous`` says of which kind they are."""
    kind = ContinuousTrpo if section.get("continuous") else DiscreteTrpo
    return kind.model_validate(dict(section))
