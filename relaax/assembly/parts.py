"""The parts of an algorithm, and the builder that returns them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from relaax.algorithm_base import DEFAULT, FloatVector, Learner
from relaax.errors import ConfigurationError
from relaax.learning.action_mask import ActionMask
from relaax.learning.action_units import ActionUnits
from relaax.learning.distributions import ActionHead
from relaax.learning.exploration import NoiseSource
from relaax.learning.exploration.ladder import SlotPlaces
from relaax.learning.exploration.parameter_noise import ParameterNoise
from relaax.learning.filters import Filters
from relaax.learning.method_config import LearnersSection, MethodConfig, SharingSettings
from relaax.learning.model import PolicyModel
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.policy import ActingPolicy, CurrentPolicy, Seat
from relaax.learning.population.imprint import Imprint
from relaax.learning.rollouts import Columns
from relaax.learning.steps import EpisodeRows, episode_schema, schema_of
from relaax.learning.team import Team
from relaax.observations import Shapes
from relaax.parameters.combining import CombineSection
from relaax.parameters.optimizers import Optimizer
from relaax.parameters.schedule import Linear
from relaax.replay.specs import MixedSpec, ReplaySpec, TableSpec
from relaax.spaces import Space

#: Makes an actor's exploration, of its policy and a source of random numbers.
MakeNoise: TypeAlias = Callable[[ActingPolicy, np.random.Generator], NoiseSource]

#: Makes a policy with noise on its parameters, of the function that unpacks them and of the model.
Perturbed: TypeAlias = Callable[
    [Callable[[FloatVector], NetworkParameters], PolicyModel], ParameterNoise
]


@dataclass(frozen=True)
class PolicyParts:
    """The parts that choose actions."""

    network: Network
    #: Makes actions of the outputs of ``heads``, joined.
    actions: ActionHead
    inputs: Shapes
    history_len: int | Mapping[str, int]
    #: New ones of each worker.
    filters: Filters
    space: Space
    seed: int | None
    gpu: bool
    #: Applied to rewards before they are stored, or by the learner: see ``is_filtered_late``.
    reward_scale: float = 1.0
    clips_rewards: bool = False
    #: The network's outputs that actions are made of.
    heads: Sequence[str] = (POLICY,)
    mask: ActionMask | None = None
    #: None for discrete actions.
    units: ActionUnits | None = None
    #: None where each action is a sample of the distribution.
    make_noise: MakeNoise | None = None
    perturbed: Perturbed | None = None
    #: Makes a policy of your own in the place of ``network`` with ``actions``; it returns extras of
    #: these names with each choice.
    model: Callable[[Any, Sequence[str]], PolicyModel] | None = None
    #: Actions are drawn evenly up to this global step.
    random_steps: int | None = None
    #: Which sizes of exploration environments have.
    places: SlotPlaces = field(default_factory=SlotPlaces)
    #: Returns the name of the policy that plays an episode, when it begins; None: the one policy.
    policy_of: Callable[[Seat], str] | None = None
    #: Whether such an episode is played to its end with the parameters that it began with.
    pins_episodes: bool = False
    #: Makes the parameters [size] of a name of the default policy's vector, when an episode begins;
    #: None: a name has parameters of its own, which a learner publishes.
    variant_of: Callable[[str, FloatVector], FloatVector] | None = None
    #: The numbers behind the parameters, which must fit the configuration here; None without any.
    imprint: Imprint | None = None
    #: What the network sees of the other agents of an environment; see ``relaax.learning.team``.
    team: Team = field(default_factory=Team)


@dataclass(frozen=True)
class WorkerParts:
    """How a worker learns from its rollouts."""

    #: Steps of a rollout.
    rollout_len: int
    #: Rollouts of one update: so many are waited for, and at most so many are learnt from.
    least: int = 1
    most: int = 32
    #: Whether acting waits for learning beside it; see docs/algorithms/da3c.md.
    waits: Literal["always", "if_behind", "never"] = "always"
    learns: bool = True


@dataclass(frozen=True)
class ExperienceParts:
    """The columns of a step, and the tables that learners draw from."""

    #: The columns that the network sees.
    columns: Columns
    #: The columns that are stored for a learner in a process of its own.
    stored: Columns
    #: By name; empty where learning in a process is not possible.
    tables: Mapping[str, TableSpec | MixedSpec]
    #: Steps that are stored.
    capacity: int
    #: Units of the stored actions, for people; see ``ConfigBase.units``.
    units: Mapping[str, Any]
    #: Whether likelihoods of actions and the learner's versions are stored.
    is_on_policy: bool
    #: Whether a learner publishes the parameters, where one has a process of its own; several push
    #: gradients.
    is_published: bool = True
    #: How workers learn; None where they deliver to a learner in a process of its own.
    worker: WorkerParts | None = None
    #: Which rows are stored of whole episodes; None: each step is a row.
    episodes: EpisodeRows | None = None
    #: How often workers ask for newer parameters, in seconds.
    pull_interval_s: float = 0.1

    @property
    def is_paced(self) -> bool:
        """Whether each rollout is begun when the learner's tables have admitted it."""
        return any(
            isinstance(table, TableSpec) and table.staleness is not None
            for table in self.tables.values()
        )

    @property
    def is_filtered_late(self) -> bool:
        """Whether states and rewards are stored as they came, and filtered by the learner."""
        return self.worker is None and self.is_on_policy

    @property
    def is_recorded(self) -> bool:
        """Whether anything is recorded."""
        return self.worker is None or self.worker.learns

    def spec(self) -> ReplaySpec:
        """Return the columns and tables, for replay servers and their clients."""
        if self.episodes is None:
            schema = schema_of(self.stored, is_on_policy=self.is_on_policy)
        else:
            schema = episode_schema(self.stored, self.episodes)
        return ReplaySpec(schema, self.capacity, dict(self.tables), self.units)


@dataclass(frozen=True)
class Averaging:
    """An update is the mean of one gradient of each of several learners."""

    count: int
    timeout_s: float


@dataclass(frozen=True)
class ParameterParts:
    """The parameters at first, and the rule by which they change."""

    #: float32 [size]: the network's, and others of the learner; behind them the statistics of
    #: filters.
    initial: FloatVector
    fingerprint: Mapping[str, Any]
    max_global_step: float
    #: Moves them by gradients; None where a learner does so for itself, and publishes them.
    optimizer: Optimizer | None = None
    learning_rate: Callable[[float], float] = lambda _: 1.0
    averaging: Averaging | None = None
    #: How gradients become updates, where each is not one.
    combine: CombineSection | None = None
    #: Merge the statistics behind the parameters.
    filters: Filters = field(default_factory=Filters)
    learns: bool = True
    exploration: Mapping[str, Linear] = field(default_factory=dict)


@dataclass(frozen=True)
class Home:
    """The place of a learner: a worker, or a process of its own."""

    seed: int | None
    random: np.random.Generator
    #: The parameters that are computed with, which the placement changes.
    policy: CurrentPolicy
    #: Those of this place, whose statistics the placement merges.
    filters: Filters = field(default_factory=Filters)


ConfigT = TypeVar("ConfigT", bound=MethodConfig)


class MethodBuilder(ABC, Generic[ConfigT]):
    """The one place of an algorithm that reads its configuration; it hands values to parts.

    ``Assembly`` wires the parts, for every algorithm in the same way: in workers the policy, with
    the learner or with the way to it; in the learner's process the learner; in the parameter server
    the parameters; in replay servers the experience. A part is made where it is needed: the
    parameter server, for instance, runs without TensorFlow.
    """

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @abstractmethod
    def experience(self) -> ExperienceParts:
        """Return the columns of a step, and the tables that learners draw from."""

    @abstractmethod
    def parameters(self) -> ParameterParts:
        """Return the parameters at first, and the rule by which they change."""

    @abstractmethod
    def learner(self, home: Home) -> Learner:
        """Return the learner for a worker, or for a process of its own, as ``home`` says."""

    def placed(self, home: Home) -> Learner:
        """Return the learner with all that stands between it and its place."""
        return self.learner(home)

    def network(self) -> Network:
        """Return the network that actors choose with."""
        return self.config.network

    @property
    def learners(self) -> LearnersSection | None:
        """The keys of several learners on one set of parameters, if there are several."""
        settings = self.config.settings
        return settings.learners if isinstance(settings, SharingSettings) else None

    def averaging(self) -> Averaging | None:
        """Return how gradients of several learners become one update; None: each is one."""
        learners = self.learners
        if learners is None or learners.gradients == "asynchronous":
            return None
        return Averaging(learners.count, learners.timeout)

    def combine(self) -> CombineSection | None:
        """Return how gradients become updates at the parameter server; None: each is one."""
        settings = self.config.settings
        return settings.combine_gradients if isinstance(settings, SharingSettings) else None

    def policy(self, seed: int) -> PolicyParts:
        """Return the parts that choose actions; each worker has another ``seed``."""
        config, settings = self.config, self.config.settings
        return PolicyParts(
            network=self.network(),
            actions=config.actions,
            inputs=settings.own_inputs,
            team=settings.team,
            history_len=settings.history_len,
            filters=config.filters(),
            space=config.action_space(),
            seed=settings.seed,
            gpu=settings.gpu,
            reward_scale=settings.reward_scale,
            clips_rewards=settings.clip_rewards,
            heads=config.heads,
            mask=settings.mask,
            units=config.action_units,
            policy_of=self._policy_of_agents(),
        )

    def _policy_of_agents(self) -> Callable[[Seat], str] | None:
        """Return the policies that the key ``agents`` names.

        ConfigurationError for another than the default one, where gradients move the parameters:
        there are no others then.
        """
        policies = self.config.settings.agent_policies
        if policies is None:
            return None
        recording = self.experience()
        others = sorted(policies.names - {DEFAULT})
        if others and (recording.worker is not None or not recording.is_published):
            raise ConfigurationError(
                f"agents: policy: {others[0]!r} needs one learner in a process of its own, which "
                f"publishes; else there is one policy, {DEFAULT!r}"
            )
        return policies
