"""The keys of R2D2's section in the YAML file."""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base.config_base import LISTED, SWITCHED
from relaax.learning.off_policy import ActionValueSettings
from relaax.learning.off_policy.settings import PrioritySection


class SequencePriorities(PrioritySection):
    """Prioritized replay of sequences."""

    alpha: float = Field(0.9, ge=0, le=1)
    beta: float = Field(0.6, ge=0, le=1)
    #: A sequence's priority is this much of its largest error, and for the rest their mean.
    largest: float = Field(0.9, ge=0, le=1)


class Settings(ActionValueSettings):
    """The keys of the ``algorithm:`` section; items of the replay are sequences."""

    history_len: Literal[1] = 1
    learners: None = None
    combine_gradients: None = None
    #: Units of the dense layers below the recurrent one, and its cells.
    hidden_layers: Annotated[tuple[PositiveInt, ...], LISTED] = (64,)
    lstm_size: PositiveInt = 64
    dueling: bool = True

    #: Steps of a sequence, and how many of them the next one has, too.
    sequence_len: PositiveInt = 40
    sequence_overlap: int = Field(20, ge=0)
    #: Steps before it, which the recurrent layer only passes through.
    burn_in: int = Field(20, ge=0)
    #: Steps that rewards are summed over before the value of a state.
    n_step: PositiveInt = 5
    #: Learn values in the scale of h: rewards of any size, without cutting them.
    rescale_values: bool = True
    #: Draw sequences by their errors; ``false``: all alike.
    prioritized: Annotated[SequencePriorities | None, SWITCHED] = SequencePriorities.model_validate(
        {}
    )

    #: Sequences of one update, updates for each sequence that is stored, and the first ones.
    batch_size: PositiveInt = 32
    updates_per_step: PositiveFloat | None = 1.0
    learning_starts: PositiveInt = 50
    learning_rate: PositiveFloat = 5e-4
    gradient_norm_clipping: PositiveFloat | None = 40.0
    target_every: PositiveInt = 200

    @model_validator(mode="after")
    def _goes_on(self) -> "Settings":
        if self.sequence_overlap >= self.sequence_len:
            raise ValueError(
                f"sequence_overlap: {self.sequence_overlap} steps are not below sequence_len, "
                f"{self.sequence_len}: each sequence has new ones"
            )
        if self.n_step > self.sequence_len:
            raise ValueError(
                f"n_step: {self.n_step} steps are more than sequence_len, {self.sequence_len}: no "
                "step of a sequence is followed by so many"
            )
        if self.network is not None and "lstm_size" in self.model_fields_set:
            raise ValueError("network and lstm_size exclude each other: write all layers there")
        return self

    @model_validator(mode="after")
    def _stores_sequences(self) -> "Settings":
        needed = self.burn_in + self.sequence_len + self.learning_starts * self.stride
        if self.replay_size < needed:
            raise ValueError(
                f"replay_size: {self.replay_size:,} steps are fewer than the {needed:,} of "
                f"learning_starts, {self.learning_starts} sequences"
            )
        return self

    @property
    def stride(self) -> int:
        """Steps from the beginning of one sequence to the beginning of the next."""
        return max(1, self.sequence_len - self.sequence_overlap)

    @property
    def first_steps(self) -> int:
        """Environment steps before learning begins."""
        return self.learning_starts * self.stride

    def most_updates(self) -> float:
        """Return how many updates a training makes at most; infinite without a ratio."""
        return super().most_updates() / self.stride
