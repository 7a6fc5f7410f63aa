"""What is stored and drawn when replays are measured: small transitions, and images."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.replay import Replay
from relaax.replay.schema import Column, Schema
from relaax.replay.specs import ReplaySpec, SelectorName, TableSpec
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import START, TERMINATED
from relaax.replay.views import Transitions

Array = npt.NDArray[Any]

TABLE = "all"
EPISODE_STEPS = 500

#: No writer that is measured is silent for so long.
LEASE_S = 600.0

#: Steps that are stored at once where a replay is filled before it is measured.
FILLED_AT_ONCE = 1000


@dataclass(frozen=True)
class Shape:
    """Steps of a kind, and what is read of them."""

    name: str
    schema: Schema
    view: Transitions
    capacity: int

    @property
    def item_bytes(self) -> int:
        """The size of the large arrays of one item: observation, next observation, action."""
        observation, action = (
            self.schema.columns[name].bytes for name in ("observation", "action")
        )
        return 2 * self.view.stack * observation + action


_FLOAT = np.dtype(np.float32)
SHAPES = {
    "small": Shape(
        "small",
        Schema(
            {
                "observation": Column(_FLOAT, (17,)),
                "action": Column(_FLOAT, (6,)),
                "reward": Column(_FLOAT),
            }
        ),
        Transitions(discount=0.99),
        1_000_000,
    ),
    "images": Shape(
        "images",
        Schema(
            {
                "observation": Column(np.dtype(np.uint8), (84, 84)),
                "action": Column(np.dtype(np.int64)),
                "reward": Column(_FLOAT),
            }
        ),
        Transitions(discount=0.99, stack=4),
        60_000,
    ),
}


def replay_of(shape: Shape, selector: SelectorName, capacity: int) -> Replay:
    """Return an empty replay."""
    return spec_of(shape, selector, capacity).make(np.random.default_rng(1), LEASE_S)


def spec_of(shape: Shape, selector: SelectorName, capacity: int) -> ReplaySpec:
    """Return what a replay stores, and what is drawn of it."""
    return ReplaySpec(shape.schema, capacity, {TABLE: TableSpec(shape.view, selector)})


def fill(replay: Replay, count: int) -> None:
    """Store ``count`` steps, whose items differ in priority if they have any."""
    random = np.random.default_rng(2)
    writer = "filler"
    replay.open_writer(writer, replay.schema)
    first = 0
    while first < count:
        rows, flags = steps(replay.schema, min(FILLED_AT_ONCE, count - first), random, first)
        first = replay.append(writer, 0, first, rows, flags)


def spread_priorities(replay: Replay, draws: int = 200) -> None:
    """Give items that are drawn random priorities."""
    random = np.random.default_rng(3)
    for _ in range(draws):
        keys = replay.sample(TABLE, 1024, 0.0).keys
        replay.update_priorities(TABLE, keys, random.random(len(keys)))


def steps(
    schema: Schema, count: int, random: np.random.Generator, first: int = 0
) -> tuple[dict[str, Array], npt.NDArray[np.uint8]]:
    """Return steps and flags of one environment, from its step ``first`` on."""
    rows = {name: _random(column, count, random) for name, column in schema.columns.items()}
    places = np.arange(first, first + count) % EPISODE_STEPS
    flags = np.zeros(count, np.uint8)
    flags[places == 0] = START
    flags[places == EPISODE_STEPS - 1] = TERMINATED
    return rows, flags


class Environments:
    """Batches of one step for each of some environments, as a worker hands them over."""

    def __init__(self, schema: Schema, count: int) -> None:
        self._slots = np.arange(count)
        self._columns: Mapping[str, Array] = steps(schema, count, np.random.default_rng(4))[0]
        self._steps = 0

    def step(self) -> StepBatch:
        """Return the next step of each."""
        place = self._steps % EPISODE_STEPS
        self._steps += 1
        flag = START * (place == 0) | TERMINATED * (place == EPISODE_STEPS - 1)
        return StepBatch(self._slots, np.full(len(self._slots), flag, np.uint8), self._columns)


def _random(column: Column, count: int, random: np.random.Generator) -> Array:
    size = (count, *column.shape)
    if column.dtype.kind == "f":
        return random.standard_normal(size, np.float32).astype(column.dtype)
    return random.integers(0, 255, size, column.dtype)
