"""The keys of DQN's section in the YAML file."""

from collections.abc import Iterator
from typing import Any

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from relaax.algorithm_base import Section
from relaax.algorithm_base.config_base import require_effect
from relaax.learning.action_mask import ActionMask
from relaax.learning.off_policy import OffPolicySettings
from relaax.parameters.schedule import Linear


class EpsilonSection(Section):
    """How often an action is drawn from all of them."""

    start: float = Field(1.0, ge=0, le=1)
    end: float = Field(0.05, ge=0, le=1)
    #: Environment steps of all actors together from ``start`` to ``end``.
    steps: float = Field(10_000, ge=0)
    #: The global step at which it begins to fall: a new schedule of a training that goes on.
    begin: float = Field(0.0, ge=0)
    #: Environments have so many different epsilons: ``epsilon ** (1 + k / (rungs - 1) * exponent)``
    #: (Horgan et al. 2018).
    rungs: PositiveInt = 1
    exponent: PositiveFloat = 7.0

    @property
    def epsilon(self) -> Linear:
        """Epsilon by the global step."""
        return Linear(self.start, self.end, self.steps, self.begin)

    @model_validator(mode="after")
    def _differs(self) -> "EpsilonSection":
        if self.rungs == 1:
            require_effect(self, ("exponent",), "rungs above 1")
        return self


class DistributionalSection(Section):
    """The distribution of returns instead of their mean: C51."""

    atoms: int = Field(51, ge=2)
    #: The lowest and the highest return that has a probability.
    low: float = -10.0
    high: float = 10.0

    @model_validator(mode="after")
    def _is_a_range(self) -> "DistributionalSection":
        if self.low >= self.high:
            raise ValueError("low must be below high")
        return self


class Settings(OffPolicySettings):
    """The keys of the ``algorithm:`` section."""

    #: How many actions there are.
    action_size: PositiveInt
    #: The observation that says which actions are allowed: ``[action_size]``, 0 where one is not.
    action_mask: str | None = None
    #: Choose the action behind a step with the network, and value it with its target.
    double: bool = True
    #: Value states and the advantages of actions apart.
    dueling: bool = False
    #: Units of the last layer of each of these two; none by default.
    stream_layers: tuple[PositiveInt, ...] = ()
    #: Learn the distribution of returns: ``true``, or a section.
    distributional: DistributionalSection | None = None
    #: How often actors try other actions.
    exploration: EpsilonSection = EpsilonSection.model_validate({})
    learning_rate: PositiveFloat = 1e-3
    #: The longest gradient; longer ones are scaled down. None leaves them.
    gradient_norm_clipping: PositiveFloat | None = 10.0
    #: Part of the way that the target follows the network: 1 copies it.
    target_rate: float = Field(1.0, gt=0, le=1)
    #: Updates from one such move to the next.
    target_every: PositiveInt = 500

    batch_size: PositiveInt = 64
    updates_per_step: PositiveFloat | None = 0.5
    learning_starts: PositiveInt = 1_000

    @property
    def exploration_by_step(self) -> dict[str, Linear]:
        """Epsilon, but for the rungs of environments."""
        return {"epsilon (exploration)": self.exploration.epsilon}

    @field_validator("distributional", mode="before")
    @classmethod
    def _distributional_switch(cls, value: Any) -> Any:
        return ({} if value else None) if isinstance(value, bool) else value

    @field_validator("stream_layers", mode="before")
    @classmethod
    def _stream_sequence(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @property
    def mask(self) -> ActionMask | None:
        """The observation that says which actions are allowed, if there is one."""
        return None if self.action_mask is None else ActionMask(self.action_mask, self.action_size)

    @model_validator(mode="after")
    def _masks_the_actions(self) -> "Settings":
        if self.mask is not None:
            self.mask.require(self.state_size)
        return self

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from super().doubts()
        exploration = self.exploration
        until = exploration.begin + exploration.steps
        if until > self.max_global_step and exploration.start != exploration.end:
            begin = f" from {exploration.begin:,.0f} on" if exploration.begin else ""
            yield (
                f"exploration: {exploration.steps:,.0f} steps{begin} are more than "
                f"max_global_step, {self.max_global_step:,.0f}: epsilon never gets to "
                f"{exploration.end:g}"
            )
        yield from self.doubts_of_target(self.target_every)

    @model_validator(mode="after")
    def _has_streams(self) -> "Settings":
        if self.stream_layers and not self.dueling:
            raise ValueError("stream_layers need dueling: true")
        return self
