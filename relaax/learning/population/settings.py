"""The keys of the YAML's ``algorithm:`` section that methods of populations share."""

from typing import Annotated, Literal

from pydantic import PositiveInt, model_validator

from relaax.algorithm_base.config_base import LISTED, require_effect
from relaax.learning.action_settings import ActionSettings
from relaax.learning.filters import FilterSettings
from relaax.learning.method_config import MethodSettings


class PopulationSettings(ActionSettings, MethodSettings, FilterSettings):
    """Derive an algorithm's settings from it."""

    #: Whether an action is an array of numbers; otherwise it is one of ``action_size``.
    continuous: bool = False
    #: Units of the dense layers, with tanh; none: actions are a linear function of states.
    hidden_layers: Annotated[tuple[PositiveInt, ...], LISTED] = (32,)
    #: Initial parameters; ``zeros`` are where the search itself finds their sizes.
    initialization: Literal["uniform", "orthogonal", "zeros"] = "orthogonal"
    filter_states: bool = False
    filter_rewards: Literal[False] = False
    #: Scores are sums of rewards, without a discount.
    rewards_gamma: Literal[1] = 1
    #: Candidates act for all agents.
    agents: None = None
    #: Candidates of a generation, and episodes that each is scored by.
    candidates: PositiveInt = 64
    episodes: PositiveInt = 1
    #: Steps of an episode that count; later ones do not.
    longest_episode: PositiveInt = 1_000

    @model_validator(mode="after")
    def _describes_actions(self) -> "PopulationSettings":
        if not self.continuous:
            keys = ("action_low", "action_high", "action_scale")
            require_effect(self, keys, "continuous: true")
            if not isinstance(self.action_size, int):
                raise ValueError("action_size: is the number of actions, or give continuous: true")
        elif not self.units.is_bounded.all():
            raise ValueError(
                "action_low and action_high must both be finite: this algorithm's actions lie "
                "between them"
            )
        return self

    @model_validator(mode="after")
    def _scores(self) -> "PopulationSettings":
        if not self.clip_rewards:
            require_effect(self, ("reward_scale",), "clip_rewards: true")
        return self

    @model_validator(mode="after")
    def _describes_one_network(self) -> "PopulationSettings":
        if self.network is not None and "hidden_layers" in self.model_fields_set:
            raise ValueError("network and hidden_layers exclude each other: write all layers there")
        return self
