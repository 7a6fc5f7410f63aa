"""The configuration of UNREAL, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.networks import (
    LSTM,
    Dense,
    Encoder,
    Head,
    Network,
    Reshape,
    TransposedConvolution,
    default_network,
)
from relaax.learning.networks.description import PREVIOUS_ACTION, PREVIOUS_REWARD
from relaax.learning.on_policy import ActorCriticConfig
from relaax.learning.on_policy.networks import network_of
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

    def network_below(self, heads: tuple[Head, ...]) -> Network:
        """Return the network with the heads of the auxiliary tasks behind the others.

        By default the recurrent layer sees the action before and its reward beside the outputs of
        the dense layers (section 2 of the paper).
        """
        settings, actions = self.settings, previous_size(self.distribution)
        heads = (*heads, *_auxiliary(settings, actions))
        if settings.network is not None:
            return network_of(settings, heads, actions)
        dense = tuple(Dense(units) for units in settings.dense_units)
        below = default_network(stacked_shape(settings.inputs, 1), dense, heads)
        before = {PREVIOUS_ACTION: Encoder((actions,)), PREVIOUS_REWARD: Encoder((1,))}
        recurrent = (LSTM(settings.lstm_size),) if settings.lstm else ()
        return Network({**below.encoders, **before}, (*below.layers, *recurrent), heads)

    def fingerprint(self) -> dict[str, Any]:
        """Return the properties that a checkpoint must agree on, as JSON values."""
        task = self.settings.reward_prediction
        return {**super().fingerprint(), "frames": 0 if task is None else task.frames}


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
