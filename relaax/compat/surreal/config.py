"""The configuration of an algorithm under Surreal's names."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt

from relaax.algorithm_base import ConfigBase, Section
from relaax.learning.shapes import CountOrSizes, StateSize, action_shape_of, space_of_states
from relaax.spaces import Space, box, discrete


class Settings(Section):
    """The keys of the ``algorithm:`` section; derive from it and add your own."""

    #: Shape of one state, or the shapes of several observations by name.
    state_size: StateSize
    #: Of discrete actions how many there are, else how many numbers one has, or their shape.
    action_size: CountOrSizes
    #: Whether an action is numbers, and not a choice.
    continuous: bool = False
    #: Environment steps of all actors together after which the training is over.
    max_global_step: float = Field(1e6, ge=1)
    #: Experiences that a buffer keeps (Surreal's ``replay.memory_size``).
    memory_size: PositiveInt = 100_000
    #: Experiences that must be there before any is sampled (``replay.sampling_start_size``).
    sampling_start_size: PositiveInt = 1000
    #: Experiences of one batch (``replay.batch_size``).
    batch_size: PositiveInt = 64
    #: Batches for each environment step; None: as many as there is time for.
    batches_per_step: PositiveFloat | None = None
    #: Steps of one experience, whose rewards are summed (``algo.n_step``).
    n_step: PositiveInt = 1
    #: Discount factor (``algo.gamma``).
    gamma: float = Field(0.99, gt=0, le=1)
    #: Of a prioritized buffer: exponents of priorities and of importance weights.
    alpha: float = Field(0.6, ge=0)
    beta: float = Field(0.4, ge=0)
    #: Seed of the learner's first parameters, and of what is drawn; None draws one.
    seed: int | None = Field(None, ge=0)


class Config(ConfigBase):
    """The typed settings: Surreal's ``learner_config`` and ``env_config`` in one.

    With settings of your own, derive from it and name their class in ``settings_class``.
    """

    settings_class: ClassVar[type[Settings]] = Settings

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings: Any = self.settings_class.model_validate(dict(config))
        size = self.settings.action_size
        if not self.settings.continuous and not isinstance(size, int):
            raise ValueError("action_size: of discrete actions it is their number; else continuous")

    def observation_space(self) -> Space:
        """Return arrays of numbers of ``state_size``, by name if it has names."""
        return space_of_states(self.settings.state_size)

    def action_space(self) -> Space:
        """Return the space of actions."""
        if self.settings.continuous:
            return box("float32", action_shape_of(self.settings.action_size))
        return discrete(self.settings.action_size)
