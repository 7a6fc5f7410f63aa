"""The keys of the YAML's ``algorithm:`` section that off-policy algorithms share."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base import Section
from relaax.algorithm_base.config_base import LISTED, SWITCHED, require_effect
from relaax.learning.action_mask import ActionMask
from relaax.learning.action_settings import ActionSettings, Numbers
from relaax.learning.method_config import MethodSettings, SharingSettings
from relaax.parameters.schedule import Linear, Schedule

FloatArray = npt.NDArray[np.float32]


class PrioritySection(Section):
    """Prioritized replay; Schaul et al. 2016 (https://arxiv.org/abs/1511.05952)."""

    #: A transition is drawn in proportion to its priority to this power.
    alpha: float = Field(0.6, ge=0, le=1)
    #: How much of the bias of that is corrected at first, and after ``beta_updates``: all of it.
    beta: float = Field(0.4, ge=0, le=1)
    #: Updates until then.
    beta_updates: PositiveInt = 100_000
    #: Added to the error of a transition, so that each is drawn at some time.
    least_priority: PositiveFloat = 1e-3

    def beta_schedule(self) -> Schedule:
        """Return beta by update."""
        return Schedule("beta of priorities", self.beta, 1.0, self.beta_updates, "beta_updates")


class OffPolicySettings(MethodSettings, SharingSettings):
    """Derive an algorithm's settings from it: they add actions, and may give other defaults."""

    #: So many of the latest states are an observation, side by side along the last axis. One of
    #: them is stored with each step.
    history_len: PositiveInt = 1
    #: Units of the dense layers of all networks.
    hidden_layers: Annotated[tuple[PositiveInt, ...], LISTED] = (256, 256)
    #: Give the numbers of states mean 0 and standard deviation 1; images stay as they are.
    filter_states: bool = False
    #: Steps that are stored; the oldest make room for new ones.
    replay_size: PositiveInt = 1_000_000
    #: Steps that are stored before learning begins.
    learning_starts: PositiveInt = 100
    #: Transitions of one update.
    batch_size: PositiveInt = 256
    #: Updates for each item that is stored, a step or a rollout; None: as many as there is time
    #: for.
    updates_per_step: PositiveFloat | None = 1.0
    #: Draw transitions by their errors: ``true``, or a section; None: all alike.
    prioritized: Annotated[PrioritySection | None, SWITCHED] = None
    #: Steps that rewards are summed over before the value of the next state.
    n_step: PositiveInt = 1

    @property
    def exploration_by_step(self) -> dict[str, Linear]:
        """How much actors explore, by the global step and by name, as far as that changes."""
        return {}

    @model_validator(mode="after")
    def _describes_one_network(self) -> "OffPolicySettings":
        if self.network is not None and "hidden_layers" in self.model_fields_set:
            raise ValueError("network and hidden_layers exclude each other: write all layers there")
        return self

    @model_validator(mode="after")
    def _learns_before_its_end(self) -> "OffPolicySettings":
        if self.learning_steps <= 0:
            raise ValueError(
                f"learning_starts: {self.first_steps} steps are not below max_global_step, "
                f"{self.max_global_step:g}: the training would end before it learns"
            )
        if self.most_updates() < 1:
            raise ValueError(
                f"updates_per_step: {self.updates_per_step:g} makes {self.most_updates():.2g} "
                f"updates in the {self.learning_steps:,.0f} steps from learning_starts to "
                "max_global_step: the training would end before it learns"
            )
        if self.n_step >= self.max_global_step:
            raise ValueError(
                f"n_step: {self.n_step} steps are not below max_global_step, "
                f"{self.max_global_step:g}: no step would be followed by so many"
            )
        return self

    @property
    def first_steps(self) -> int:
        """Environment steps before learning begins."""
        return self.learning_starts

    @property
    def learning_steps(self) -> float:
        """Environment steps from the beginning of learning to the end of the training."""
        return self.max_global_step - self.first_steps

    def most_updates(self) -> float:
        """Return how many updates a training makes at most; infinite without a ratio."""
        if self.updates_per_step is None:
            return math.inf
        return self.learning_steps * self.updates_per_step

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from super().doubts()
        steps = f"max_global_step, {self.max_global_step:,.0f}"
        if self.learning_steps < max(self.max_global_step / 10, self.batch_size):
            yield (
                f"learning_starts: {self.first_steps:,} steps leave "
                f"{self.learning_steps:,.0f} of {steps}, to learn in: less than a tenth, or fewer "
                f"than a batch of {self.batch_size}"
            )
        if self.n_step > self.max_global_step / 10:
            yield (
                f"n_step: {self.n_step:,} steps are more than a tenth of {steps}: most steps are "
                "learnt from late, or not at all"
            )
        updates, priorities = self.most_updates(), self.prioritized
        if priorities is not None and updates < priorities.beta_updates and priorities.beta < 1:
            yield (
                f"prioritized: beta_updates: {priorities.beta_updates:,} updates are more than the "
                f"{updates:,.0f} of the whole training, so that beta never gets to 1"
            )

    def doubts_of_target(self, every: int) -> Iterator[str]:
        """Yield a doubt where a target that moves every so many updates never moves."""
        if every > self.most_updates():
            yield (
                f"target_every: {every:,} updates are more than the {self.most_updates():,.0f} of "
                "the whole training: the target never moves"
            )

    @model_validator(mode="after")
    def _stores_what_it_learns_from(self) -> "OffPolicySettings":
        needed = {
            "learning_starts": self.learning_starts,
            "batch_size": self.batch_size,
            "n_step and history_len together": self.n_step + self.history_len,
        }
        for keys, least in needed.items():
            if self.replay_size < least:
                raise ValueError(
                    f"replay_size: {self.replay_size} steps are fewer than {keys}, {least}"
                )
        return self


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


class ExploringSettings(OffPolicySettings):
    """Settings of algorithms that choose actions by their values, and now and then others."""

    #: How often actors try other actions.
    exploration: EpsilonSection = EpsilonSection.model_validate({})

    @property
    @abstractmethod
    def choices(self) -> tuple[int, int]:
        """How many choices an action is made of, and how many actions each of them has."""

    @property
    def exploration_by_step(self) -> dict[str, Linear]:
        """Epsilon, but for the rungs of environments."""
        return {"epsilon (exploration)": self.exploration.epsilon}

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


class DiscreteSettings(ExploringSettings):
    """Settings of algorithms that choose one of several actions by their values."""

    #: How many actions there are.
    action_size: PositiveInt
    #: The observation that says which actions are allowed: ``[action_size]``, 0 where one is not.
    action_mask: str | None = None

    @property
    def choices(self) -> tuple[int, int]:
        """One choice."""
        return 1, self.action_size

    @property
    def mask(self) -> ActionMask | None:
        """The observation that says which actions are allowed, if there is one."""
        return None if self.action_mask is None else ActionMask(self.action_mask, self.action_size)

    @model_validator(mode="after")
    def _masks_the_actions(self) -> "DiscreteSettings":
        if self.mask is not None:
            self.mask.require(self.state_size)
        return self


class TargetSettings(ExploringSettings):
    """Settings of algorithms with a network of the actions' values, and a target of it."""

    learning_rate: PositiveFloat = 1e-3
    #: The longest gradient; longer ones are scaled down. None leaves them.
    gradient_norm_clipping: PositiveFloat | None = 10.0
    #: Part of the way that the target follows the network: 1 copies it.
    target_rate: float = Field(1.0, gt=0, le=1)
    #: Updates from one such move to the next.
    target_every: PositiveInt = 500

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from super().doubts()
        yield from self.doubts_of_target(self.target_every)


class ActionValueSettings(TargetSettings, DiscreteSettings):
    """Settings of algorithms with such a network of one choice."""

    #: Value states and the advantages of actions apart.
    dueling: bool = False
    #: Units of the last layer of each of these two; none by default.
    stream_layers: Annotated[tuple[PositiveInt, ...], LISTED] = ()

    @model_validator(mode="after")
    def _has_streams(self) -> "ActionValueSettings":
        if self.stream_layers and not self.dueling:
            raise ValueError("stream_layers need dueling: true")
        return self


class ContinuousSettings(ActionSettings, OffPolicySettings):
    """Settings of algorithms whose actions are numbers between bounds."""

    action_low: Numbers = -1.0
    action_high: Numbers = 1.0
    #: Actions are drawn evenly up to this global step; None: up to ``learning_starts``.
    random_steps: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _has_bounds(self) -> "ContinuousSettings":
        if not self.units.is_bounded.all():
            raise ValueError(
                "action_low and action_high must both be finite, since this algorithm's actions "
                f"lie between them; they are {self.action_low} and {self.action_high}"
            )
        return self

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from super().doubts()
        if self.random_steps is None:
            return
        random, steps = f"random_steps: {self.random_steps:,} steps", self.max_global_step
        if self.random_steps >= steps:
            yield (
                f"{random} are not below max_global_step, {steps:,.0f}: no action of the training "
                "is the policy's"
            )
        elif self.random_steps > steps * 0.9:
            yield (
                f"{random} are more than nine tenths of max_global_step, {steps:,.0f}: hardly an "
                "action of the training is the policy's"
            )

    @property
    def first_random_steps(self) -> int:
        """The global step up to which actions are drawn evenly."""
        return self.learning_starts if self.random_steps is None else self.random_steps

    @property
    def exploration_by_step(self) -> dict[str, Linear]:
        """Actions are drawn evenly at first, and never again."""
        return {"random actions (random_steps)": Linear(1.0, 0.0, 0.0, self.first_random_steps)}
