"""Keys and configuration that all algorithms of this library share."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field, PositiveFloat, field_validator, model_validator

from relaax.algorithm_base import ConfigBase, FloatVector, Section
from relaax.algorithm_base.config_base import require_effect
from relaax.learning.action_mask import ActionMask, inputs_of, space_with_mask
from relaax.learning.action_units import ActionUnits
from relaax.learning.agents import AgentPolicies, AgentSection
from relaax.learning.described_policy import DescribedPolicy
from relaax.learning.distributions import ActionHead
from relaax.learning.filters import Filters
from relaax.learning.networks import POLICY, Network
from relaax.learning.rollouts import Columns
from relaax.learning.shapes import (
    HistoryLength,
    StateSize,
    length_alone,
    lengths_by_name,
    stacked_shape,
)
from relaax.learning.steps import column_of
from relaax.learning.team import TEAM, Team, TeamSettings, misfit_of_team, team_shape
from relaax.observations import UNNAMED, Shapes
from relaax.parameters.combining import CombineSection
from relaax.replay.schema import Column
from relaax.spaces import Space
from relaax.steps import AgentName


class LearnersSection(Section):
    """Several learners on one set of parameters, which the parameter server moves."""

    #: How many learners there are. Each that waits for others holds a thread of the server.
    count: int = Field(ge=1, le=12)
    #: ``synchronous``: an update is the mean of a gradient of each learner. ``asynchronous``: each
    #: gradient is an update (Nair et al. 2015, https://arxiv.org/abs/1507.04296).
    gradients: Literal["synchronous", "asynchronous"] = "synchronous"
    #: How long a learner is waited for, in seconds, before the others go on without it: less than
    #: a call to the parameter server may take.
    timeout: float = Field(5.0, gt=0, le=8)


class MethodSettings(Section):
    """The keys that the ``algorithm:`` section of each of them has."""

    #: Shape of one state: ``[]`` for a number, ``[n]`` for a vector, ``[height, width]`` or with
    #: channels for an image; or the shapes of several observations by name.
    state_size: StateSize
    #: How many of the latest states the network sees together; by name for some observations.
    history_len: HistoryLength = 1
    #: The network's layers, or the path of a file with them; None: those of the keys for layers.
    network: Any = None
    #: Environment steps of all agents together after which the training is over.
    max_global_step: float = Field(1e6, ge=1)
    #: Discount factor.
    rewards_gamma: float = Field(0.99, gt=0, le=1)
    #: Learn from rewards multiplied by this; scores are reported as they are.
    reward_scale: PositiveFloat = 1.0
    #: Learn from rewards cut to [-1, 1], after that; scores are reported uncut.
    clip_rewards: bool = False
    #: Let TensorFlow see the GPU.
    gpu: bool = False
    #: Seed of initial parameters, of actions and of samples; None draws one.
    seed: int | None = Field(None, ge=0)
    #: Which policy acts for which agent: the first entry that matches; None: one acts for all.
    agents: list[AgentSection] | None = Field(None, min_length=1)

    @property
    def agent_policies(self) -> AgentPolicies | None:
        """The policies of agents by ``agents``; None where one acts for all."""
        return None if self.agents is None else AgentPolicies(self.agents)

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from ()

    @property
    def mask(self) -> ActionMask | None:
        """The observation that says which actions are allowed, if there is one."""
        return None

    @property
    def mask_name(self) -> str | None:
        """The name of that observation."""
        return None if self.mask is None else self.mask.name

    @property
    def team(self) -> Team:
        """What a critic sees of the other agents of an environment; nothing without keys for it."""
        return self.team_of_section if isinstance(self, TeamSettings) else Team()

    @property
    def own_inputs(self) -> Shapes:
        """The shapes of an agent's own inputs: ``state_size`` without the mask of actions."""
        return inputs_of(self.state_size, self.mask)

    @property
    def inputs(self) -> Shapes:
        """The shapes of the network's inputs: an agent's own ones, and what is seen of others."""
        own = self.own_inputs
        if self.team.size == 1:
            return own
        named = own if isinstance(own, Mapping) else {UNNAMED: own}
        return {**named, TEAM: team_shape(own, self.team)}


class SharingSettings(Section):
    """The keys of methods whose gradients move the parameters, those of several learners, too."""

    #: Several learners, each in a process of its own; None: one, which publishes.
    learners: LearnersSection | None = None
    #: How the gradients that come to the parameter server become updates; None: each is one.
    combine_gradients: CombineSection | None = None

    @field_validator("learners", mode="before")
    @classmethod
    def _require_section(cls, learners: Any) -> Any:
        if isinstance(learners, int):
            raise ValueError(f"must be a section of keys: write {{count: {learners}}}")
        return learners

    @property
    def are_gradients_single(self) -> bool:
        """Whether gradients come to the parameter server, each by itself."""
        return self.learners is not None and self.learners.gradients == "asynchronous"

    @model_validator(mode="after")
    def _combines_what_comes(self) -> "SharingSettings":
        if not self.are_gradients_single:
            sources = ["learners: {count: 2, gradients: asynchronous}"]
            if "learner" in type(self).model_fields:
                sources.insert(0, "learner: worker")
            needs = f"gradients that come one by one: {', or '.join(sources)}"
            require_effect(self, ("combine_gradients",), needs)
        return self


class MethodConfig(ConfigBase):
    """The typed settings, checked once, and the parts made of them. Derived classes set these."""

    settings: MethodSettings
    #: The network that actors choose with.
    network: Network
    #: How actions are made of the outputs of the network's ``heads``.
    actions: ActionHead
    heads: tuple[str, ...] = (POLICY,)
    #: Converts these to actions of the plant; None for discrete ones.
    action_units: ActionUnits | None = None
    #: The numbers of each choice that the learner needs, by name; see ``Columns.of``.
    extras: tuple[str, ...] = ()
    #: Those of a policy of your own, beside them.
    own_extras: Mapping[str, Column] = MappingProxyType({})

    def columns(self, filtered: Sequence[str] = ()) -> Columns:
        """Return the columns of observations and actions; those to be ``filtered`` are apart."""
        return Columns.of(
            self.network,
            self.actions,
            action_mask=self.settings.mask,
            filtered=filtered,
            extras=self.extras,
            own_extras=self.own_extras,
        )

    @property
    def stored_columns(self) -> Columns:
        """The columns that are stored of a step; of a history the newest state, unfiltered."""
        columns = self.columns(list(self.filters().states))
        newest: Any = stacked_shape(self.settings.inputs, 1)
        if isinstance(columns.observation_shape, Mapping):  # the mask, and the previous step, too
            named = newest if isinstance(newest, dict) else {UNNAMED: newest}
            newest = {**columns.observation_shape, **named}
        return replace(columns, observation_shape=newest)

    @property
    def histories(self) -> dict[str, int]:
        """How many of the latest states are seen together, by their stored column; not one."""
        inputs, length = self.settings.inputs, self.settings.history_len
        if isinstance(inputs, Mapping):
            lengths = lengths_by_name(inputs, length)
        else:
            lengths = {UNNAMED: length_alone(length)}
        return {column_of(name): length for name, length in lengths.items() if length > 1}

    def learner_count(self) -> int:
        """Return how many learners share the parameters."""
        sharing = self.settings.learners if isinstance(self.settings, SharingSettings) else None
        return 1 if sharing is None else sharing.count

    def filters(self) -> Filters:
        """Return new filters of states and rewards; by default there are none."""
        return Filters()

    def units(self) -> Mapping[str, Any]:
        """Return the plant's actions at -1 and 1, as JSON values."""
        return {} if self.action_units is None else self.action_units.fingerprint

    def misfit_of(self, agents: Sequence[AgentName]) -> str | None:
        """Return which of ``agents`` no entry of the key ``agents`` matches; see ``ConfigBase``.

        Or why they are no team.
        """
        settings = self.settings
        if isinstance(settings, TeamSettings):
            misfit = misfit_of_team(settings.team_size, agents)
            if misfit is not None:
                return misfit
        policies = settings.agent_policies
        return None if policies is None else policies.misfit_of(agents)

    def describe_policy(self, vector: FloatVector) -> DescribedPolicy:
        """Return all that actions depend on; of the parameters [size] the policy's come first.

        The statistics of filters come last.
        """
        manifest, filters, settings = self.network.manifest, self.filters(), self.settings
        own, scales = filters.separated(vector)
        return DescribedPolicy(
            network=self.network,
            parameters=manifest.unpack(own[: manifest.size]),
            distribution=self.actions,
            state_size=settings.own_inputs,
            action_mask=settings.mask,
            history_len=settings.history_len,
            heads=tuple(self.heads),
            units=self.action_units,
            scales=dict(zip(filters.states, scales, strict=False)),  # those of rewards come last
        )

    def scales_states(self) -> bool:
        """Return whether states are filtered."""
        return bool(self.filters().states)

    def largest_reward(self) -> float:
        """Return the size up to which a reward is one that values are learnt of well."""
        if self.settings.clip_rewards or self.filters().rewards is not None:
            return inf
        return super().largest_reward() / self.settings.reward_scale

    def doubts(self) -> Sequence[str]:
        """Return warnings; see ``ConfigBase``."""
        return [*self.settings.doubts()]

    def observation_space(self) -> Space:
        """Return arrays of numbers of ``state_size``, by name if it has names; so is the mask."""
        return space_with_mask(self.settings.state_size, self.settings.mask)

    @abstractmethod
    def action_space(self) -> Space:
        """Return the space of actions."""

    def uses_gpu(self) -> bool:
        """Return whether TensorFlow sees the GPU."""
        return self.settings.gpu
