"""Compares a written policy with the agent behind ``relaax-rlx-server --exploit``."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import BatchAgentBase
from relaax.learning.action_units import ActionUnits
from relaax.observations import UNNAMED, Observations
from relaax.server.export.signature import (
    ACTION,
    NEXT,
    START,
    ObservationInput,
    Signature,
    zeros_of,
)
from relaax.steps import START as STARTS
from relaax.steps import read_transitions

Array = npt.NDArray[Any]

#: Takes a file's inputs by name, and returns its outputs by name.
PolicyFunction: TypeAlias = Callable[[Mapping[str, Array]], Mapping[str, Array]]

#: So many environments take so many steps, some of which begin other episodes.
ENVIRONMENTS, STEPS, RESTARTS = 50, 20, 0.1

#: Continuous actions that differ by no more, in the policy's units and measured by their size, are
#: the same: sums of float32 in another order are not the same to the last bit.
TOLERANCE = 1e-4

#: For the same reason another one of two equally good choices may be taken now and then.
MOST_DIFFERENT = 0.01


@dataclass(frozen=True)
class RandomStep:
    """The observations of environments in one step."""

    #: By the names of the file's inputs.
    inputs: dict[str, Array]
    #: By the names of the configuration.
    states: Observations
    #: bool [B]
    starts: Array


@dataclass(frozen=True)
class Comparison:
    """How many actions were compared, and how many of them differ."""

    actions: int
    different: int

    @property
    def is_close(self) -> bool:
        """Whether they differ no more often than near ties do."""
        return self.different <= MOST_DIFFERENT * self.actions

    def __str__(self) -> str:
        return (
            f"{self.actions - self.different:,} of {self.actions:,} actions are those of the server"
        )


def random_steps(signature: Signature, mask: str | None, seed: int = 0) -> Iterator[RandomStep]:
    """Yield random observations; ``mask`` is the name of the mask in the configuration."""
    random = np.random.default_rng(seed)
    for step in range(STEPS):
        starts = (random.random(ENVIRONMENTS) < RESTARTS) | (step == 0)
        inputs: dict[str, Array] = {}
        states: dict[str, Array] = {
            name: random.normal(size=(ENVIRONMENTS, *shape)).astype(np.float32)
            for name, shape in signature.unseen.items()
        }
        for each in signature.observations:
            inputs[each.state.name] = states[each.name] = _drawn(each, random)
        if signature.mask is not None and mask is not None:
            allowed = random.integers(0, 2, (ENVIRONMENTS, *signature.mask.shape), np.uint8)
            some = random.integers(allowed.shape[1], size=ENVIRONMENTS)
            allowed[np.arange(ENVIRONMENTS), some] = 1  # there is something to choose
            inputs[signature.mask.name] = states[mask] = allowed
        yield RandomStep(inputs, states.get(UNNAMED, states), starts)


def compared(
    signature: Signature, mask: str | None, agent: BatchAgentBase, written: PolicyFunction
) -> Comparison:
    """Let ``agent``, and a file, act in the same random observations.

    Both start without memory, and keep their own.
    """
    slots = np.arange(ENVIRONMENTS)
    agent.open(slots)
    is_running, different = np.zeros(ENVIRONMENTS, np.bool_), 0
    remembered = zeros_of(signature, ENVIRONMENTS)
    none, rewards = np.zeros(0, np.float32), np.zeros(ENVIRONMENTS)
    for each in random_steps(signature, mask):
        flags = np.where(each.starts, STARTS, 0).astype(np.uint8)
        transitions = read_transitions(slots, flags, rewards, is_running)
        expected = np.asarray(agent.act(transitions, agent.check(each.states), none))
        starts = {START: each.starts} if signature.remembers else {}
        outputs = written({**each.inputs, **starts, **remembered})
        remembered = {name: outputs[NEXT + name] for name in remembered}
        different += _differences(expected, outputs[ACTION], signature.units)
        is_running[:] = True
    agent.close_slots(slots)
    return Comparison(ENVIRONMENTS * STEPS, different)


def _differences(expected: Array, found: Array, units: ActionUnits | None) -> int:
    """Return how many of the actions [B, ...] are not the same."""
    if expected.shape != found.shape:
        return len(expected)
    if units is None:
        is_same = expected == found
    else:
        sizes = units.half * (1 + np.abs(units.from_plant(expected)))
        near = TOLERANCE * sizes + np.spacing(np.abs(expected))  # far from 0 float32 is coarse
        is_same = np.abs(found - expected.astype(np.float64)) <= near
    return int((~is_same.reshape(len(expected), -1).all(axis=1)).sum())


def _drawn(observation: ObservationInput, random: np.random.Generator) -> Array:
    """Return states like the training's, where its filters have their statistics."""
    info, scale = observation.state, observation.scale
    shape = (ENVIRONMENTS, *info.shape)
    if info.dtype == "uint8":
        return random.integers(0, 256, shape, np.uint8)
    drawn = random.normal(0, 2, shape)
    if scale is not None:
        drawn = drawn / np.reshape(scale.factor, info.shape) + np.reshape(scale.center, info.shape)
    return drawn.astype(info.dtype)
