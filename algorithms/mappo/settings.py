"""The keys of MAPPO's section in the YAML file."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.assembly import bundled
from relaax.learning.team import TeamSettings
from relaax.parameters.optimizers import OptimizerSections

_ppo: Any = bundled("ppo").settings


class MappoSettings(TeamSettings):
    """Defaults other than those of PPO: Yu et al. 2021, appendix, and the code of its authors."""

    learner: Literal["process"] = "process"
    episode_len: PositiveInt = 32
    rollouts_per_batch: PositiveInt = 32
    passes: PositiveInt = 5
    minibatches: PositiveInt = 1
    initial_learning_rate: PositiveFloat = 5e-4
    entropy_beta: float = Field(0.01, ge=0)
    value_loss_weight: PositiveFloat = 1.0
    huber_delta: PositiveFloat | None = 10.0
    normalize_values: bool = True

    @model_validator(mode="before")
    @classmethod
    def _adam_of_the_paper(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or set(OptimizerSections.model_fields) & set(values):
            return values
        return {**values, "Adam": {"epsilon": 1e-5, "gradient_norm_clipping": 10.0}}


class DiscreteMappo(MappoSettings, _ppo.DiscretePpo):  # type: ignore[misc]
    """The keys of a section with discrete actions."""


class ContinuousMappo(MappoSettings, _ppo.ContinuousPpo):  # type: ignore[misc]
    """The keys of a section with continuous actions."""


def settings_of(section: Mapping[str, Any]) -> DiscreteMappo | ContinuousMappo:
    """Return the settings of a section; ``continuous`` says of which kind they are."""
    kind = ContinuousMappo if section.get("continuous") else DiscreteMappo
    return kind.model_validate(dict(section))
