"""The keys of QMIX's section in the YAML file."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from relaax.algorithm_base.config_base import LISTED, require_effect
from relaax.learning.action_mask import ActionMask
from relaax.learning.off_policy import TargetSettings
from relaax.observations import UNNAMED, Shape


class Settings(TargetSettings):
    """The keys of the ``algorithm:`` section."""

    history_len: Literal[1] = 1
    network: None = None
    #: How many actions each agent has; as many numbers as there are agents, all the same.
    action_size: Annotated[tuple[PositiveInt, ...], LISTED, Field(min_length=1)]
    #: The observation that says which actions are allowed: those of each agent behind one another.
    action_mask: str | None = None
    #: The observation that is the state of the environment: the mixer alone sees it. None: the
    #: mixer sees what all agents observe.
    mixer_state: str | None = None
    #: ``vdn``: the value of all is the sum of the agents' values; ``qmix``: a monotonic network.
    mixer: Literal["qmix", "vdn"] = "qmix"
    #: Units of the mixing network's hidden layer.
    mixing_units: PositiveInt = 32
    #: Let agents know their number: the first layer has a bias of its own for each.
    agent_index: bool = True

    hidden_layers: Annotated[tuple[PositiveInt, ...], LISTED] = (64,)
    learning_rate: PositiveFloat = 5e-4
    batch_size: PositiveInt = 32
    updates_per_step: PositiveFloat | None = 0.5
    learning_starts: PositiveInt = 1_000
    #: Choose the actions behind a step with the network, and value them with its target.
    double: bool = True

    @property
    def choices(self) -> tuple[int, int]:
        """How many agents there are, and how many actions each of them has."""
        return len(self.action_size), self.action_size[0]

    @property
    def mask(self) -> ActionMask | None:
        """The observation that says which actions are allowed, if there is one."""
        if self.action_mask is None:
            return None
        return ActionMask(self.action_mask, sum(self.action_size), nvec=self.action_size)

    @property
    def observed(self) -> tuple[str, Shape]:
        """The name and the shape of what agents observe; ValueError if it is not one vector."""
        inputs = self.inputs
        if not isinstance(inputs, Mapping):
            return UNNAMED, inputs
        (name, *others) = [name for name in inputs if name != self.mixer_state] or [UNNAMED]
        if others or name == UNNAMED:
            raise ValueError(
                "state_size: agents observe one vector, that of each behind that of the one "
                f"before; beside action_mask and mixer_state there are {[name, *others]}"
            )
        return name, inputs[name]

    @model_validator(mode="after")
    def _is_a_team(self) -> "Settings":
        agents, _ = self.choices
        if len(set(self.action_size)) > 1:
            raise ValueError(
                f"action_size: agents share a network, so all have the same number of actions; "
                f"they are {list(self.action_size)}"
            )
        if self.mask is not None:
            self.mask.require(self.state_size)
        _, shape = self.observed
        if len(shape) != 1 or shape[0] % agents:
            raise ValueError(
                f"state_size: what {agents} agents observe is a vector of as many numbers for "
                f"each, [{agents} * n], is {list(shape)}"
            )
        return self

    @model_validator(mode="after")
    def _mixes(self) -> "Settings":
        if self.mixer == "vdn":
            require_effect(self, ("mixer_state", "mixing_units"), "mixer: qmix")
        if self.mixer_state is not None:
            inputs = self.inputs if isinstance(self.inputs, Mapping) else {}
            shape = inputs.get(self.mixer_state)
            if shape is None or len(shape) != 1:
                raise ValueError(
                    f"mixer_state: state_size has no vector of the name {self.mixer_state}"
                )
        return self

    @field_validator("history_len", "network", mode="before")
    @classmethod
    def _is_left_out(cls, value: Any, info: ValidationInfo) -> Any:
        if value not in (None, 1):
            raise ValueError(
                "agents of a team see their newest observation, through layers that they share: "
                f"leave {info.field_name} out, and write hidden_layers"
            )
        return value
