"""The keys of UNREAL's section in the YAML file."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base import Section
from relaax.algorithm_base.config_base import SWITCHED, require_effect
from relaax.learning.on_policy import ActorCriticSettings, DiscreteSettings
from relaax.learning.on_policy.policy_settings import IMAGE_DIMENSIONS
from relaax.observations import UNNAMED

#: The last layer makes four rows and columns of cells of one at least.
LEAST_CELLS = 4


class PixelControl(Section):
    """Learn to change the pixels in each cell of the image; section 3.1 of the paper."""

    #: The paper's lambda_PC.
    weight: PositiveFloat = 0.01
    #: Side of a cell in pixels. The image is cut to an even number of cells, around its middle.
    cell: PositiveInt = 4
    #: Discount factor of the changes.
    discount: float = Field(0.9, gt=0, le=1)
    #: Channels of the image that the last layer makes the cells' values of.
    channels: PositiveInt = 32
    #: The name of the image; None: the only one.
    image: str | None = None


class RewardPrediction(Section):
    """Learn to predict whether the next reward is zero, positive or negative; section 3.2."""

    #: The paper's lambda_RP.
    weight: PositiveFloat = 1.0
    #: States that the reward behind the last of them is predicted from.
    frames: PositiveInt = 3
    #: Units of the dense layer between these and the three classes.
    units: PositiveInt = 128


class ValueReplay(Section):
    """Learn values again, from rollouts that were stored; section 3.3."""

    #: The paper's lambda_VR.
    weight: PositiveFloat = 1.0


class Settings(DiscreteSettings, ActorCriticSettings):
    """The keys of the ``algorithm:`` section: DA3C's, and a section for each auxiliary task."""

    learner: Literal["process"] = "process"
    history_len: Literal[1] = 1
    #: Number of discrete actions.
    action_size: PositiveInt
    action_bits: None = None
    action_mask: None = None
    lstm: bool = True
    #: Steps of a rollout, and rollouts of an update.
    episode_len: PositiveInt = 20
    rollouts_per_update: PositiveInt = 8
    passes: Literal[1] = 1
    minibatches: Literal[1] = 1
    #: The newest steps, which auxiliary tasks learn from.
    replay_size: PositiveInt | None = 2000
    #: Rollouts, and rewards, that are drawn of them for an update; None: ``rollouts_per_update``.
    replayed: PositiveInt | None = None

    #: Each of them with ``true`` for the paper's numbers, or ``false`` to leave it out.
    pixel_control: Annotated[PixelControl | None, SWITCHED] = PixelControl.model_validate({})
    reward_prediction: Annotated[RewardPrediction | None, SWITCHED] = (
        RewardPrediction.model_validate({})
    )
    value_replay: Annotated[ValueReplay | None, SWITCHED] = ValueReplay.model_validate({})

    @property
    def replayed_of_batch(self) -> int:
        """How many stored rollouts, and rewards, an update learns from, the default filled in."""
        return self.replayed or self.rollouts_per_update

    @property
    def image(self) -> tuple[str, tuple[int, ...]]:
        """The name and the shape [height, width, ...] of the image that pixel control changes.

        ValueError unless the one that the section names is an image, or there is one alone.
        """
        inputs, name = self.inputs, None if self.pixel_control is None else self.pixel_control.image
        shapes = dict(inputs) if isinstance(inputs, Mapping) else {UNNAMED: inputs}
        images = {each: shape for each, shape in shapes.items() if len(shape) in IMAGE_DIMENSIONS}
        if name is not None and name not in images:
            raise ValueError(f"pixel_control: image: {name} is no image in state_size")
        if name is None and len(images) != 1:
            found = "no image" if not images else f"the images {', '.join(images)}"
            wanted = "write pixel_control: false" if not images else "name one of them: image"
            raise ValueError(f"pixel_control: state_size has {found}: {wanted}")
        chosen = next(iter(images)) if name is None else name
        return chosen, images[chosen]

    @model_validator(mode="after")
    def _draws_for_tasks(self) -> "Settings":
        tasks = self.pixel_control, self.reward_prediction, self.value_replay
        if all(task is None for task in tasks):
            needs = "pixel_control, reward_prediction or value_replay"
            require_effect(self, ("replayed",), needs)
        return self

    @model_validator(mode="after")
    def _remembers(self) -> "Settings":
        if self.network is None and not self.lstm:
            require_effect(self, ("lstm_size",), "lstm: true")
        return self

    @model_validator(mode="after")
    def _has_cells(self) -> "Settings":
        if self.pixel_control is not None and min(self.grid) < LEAST_CELLS:
            _, shape = self.image
            raise ValueError(
                f"pixel_control: cell: an image of {shape[0]}x{shape[1]} pixels has fewer than "
                f"{LEAST_CELLS}x{LEAST_CELLS} cells of {self.pixel_control.cell}x"
                f"{self.pixel_control.cell}"
            )
        return self

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells, an even number of each, that fit into the image."""
        cell = 1 if self.pixel_control is None else self.pixel_control.cell
        height, width, *_ = self.image[1]
        return height // (2 * cell) * 2, width // (2 * cell) * 2
