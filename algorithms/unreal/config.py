"""The configuration of UNREAL, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.networks import (
    LSTM,
    POLICY,
    Dense,
    Encoder,
    Head,
    Network,
    Reshape,
    TransposedConvolution,
    default_network,
    read_network,
)
from relaax.learning.networks.description import PREVIOUS_ACTION, PREVIOUS_REWARD
from relaax.learning.on_policy import VALUE, ActorCriticConfig
from relaax.learning.previous import previous_size
from relaax.learning.shapes import stacked_shape
from relaax.observations import UNNAMED

from .settings import PixelControl, RewardPrediction, Settings

#: The heads of the auxiliary tasks.
PIXELS, REWARDS = "pixel_control", "reward_prediction"

#: Of the transposed convolution that makes the cells' values: 9x9 places become 20x20 cells.
KERNEL, STRIDE = 4, 2

#: Zero, positive, negative.
CLASSES = 3


class Config(ActorCriticConfig):
    """An actor-critic with the heads of its auxiliary tasks."""

    settings: Settings

    def __init__(self, config: Mapping[str, Any]) -> None:
        own = Settings.model_validate(dict(config))
        super().__init__(config, "unreal", own, own.actions)
        self.network = network_of(own, previous_size(self.distribution))

    def fingerprint(self) -> dict[str, Any]:
        """Return the properties that a checkpoint must agree on, as JSON values."""
        task = self.settings.reward_prediction
        return {**super().fingerprint(), "frames": 0 if task is None else task.frames}


def network_of(settings: Settings, actions: int) -> Network:
    """Return the network; an action before is ``actions`` numbers of its inputs.

    By default the recurrent layer sees the action before and its reward beside the outputs of the
    dense layers (section 2 of the paper). ValueError for one that cannot be made.
    """
    shape = stacked_shape(settings.inputs, 1)
    heads = (Head(POLICY, actions), Head(VALUE, 1), *_auxiliary(settings, actions))
    if settings.network is not None:
        return read_network(settings.network, shape, heads, actions)
    dense = tuple(Dense(units) for units in settings.dense_units)
    below = default_network(shape, dense, heads)
    before = {PREVIOUS_ACTION: Encoder((actions,)), PREVIOUS_REWARD: Encoder((1,))}
    recurrent = (LSTM(settings.lstm_size),) if settings.lstm else ()
    return Network({**below.encoders, **before}, (*below.layers, *recurrent), heads)


def _auxiliary(settings: Settings, actions: int) -> list[Head]:
    heads = []
    if settings.pixel_control is not None:
        heads.append(_pixels(settings.pixel_control, settings.grid, actions))
    if settings.reward_prediction is not None:
        inputs = settings.inputs
        sees = tuple(sorted(inputs)) if isinstance(inputs, Mapping) else (UNNAMED,)
        heads.append(_rewards(settings.reward_prediction, sees))
    return heads


def _pixels(task: PixelControl, grid: tuple[int, int], actions: int) -> Head:
    """Return the head of the values of each action in each cell: advantages, then the state's.

    One transposed convolution of ``actions + 1`` channels is the paper's two, of the advantages and
    of the state's value, which see the same.
    """
    rows, columns = ((cells - KERNEL) // STRIDE + 1 for cells in grid)
    layers = (
        Dense(rows * columns * task.channels),
        Reshape((rows, columns, task.channels)),
        TransposedConvolution(actions + 1, KERNEL, STRIDE, activation="linear"),
    )
    return Head(PIXELS, grid[0] * grid[1] * (actions + 1), layers=layers, is_linear=False)


def _rewards(task: RewardPrediction, sees: tuple[str, ...]) -> Head:
    return Head(REWARDS, CLASSES, layers=(Dense(task.units),), sees=sees, frames=task.frames)
