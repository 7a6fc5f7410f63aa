"""The workers of an experiment: which environments, policies and streams each of them has.

Seed 002, "Configuring Your Experiment". A stream's name in the place of a stream means a stream of
the type ``NAME``.
"""

import re
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
)

from relaax.algorithm_base import Section
from relaax.algorithm_base.config_base import require_effect
from relaax.configuration.actor_agents import AgentSamples
from relaax.configuration.curriculum import Curriculum, of_enum
from relaax.configuration.option_kinds import MongoOption, identifier_text
from relaax.configuration.population_rules import PopulationAlgorithm
from relaax.errors import ConfigurationError
from relaax.processes.identifiers import LATEST, require_tag


def _policy_name(value: str) -> str:
    if not re.fullmatch(r"\w[\w-]*", value, re.ASCII):
        raise ValueError(
            f"a policy's name is that of files and processes, and has letters, digits, _ and - "
            f"alone, is {value!r}"
        )
    return value


#: Fields of inline streams.
_OF_DATABASE = ("policy_identifier", "parameter_db")


def _eval_tag(value: str) -> str:
    try:
        require_tag(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return value


#: The tag of an evaluation.
EvalTag = Annotated[str, AfterValidator(_eval_tag)]

#: The name of a policy.
PolicyName = Annotated[str, AfterValidator(_policy_name)]


class Environment(Section):
    """An environment: its type, and the arguments that it is made with.

    ``type_`` is ``atari``, with a ``game_name`` of Gymnasium's among ``args``; a name of
    ``register_environment``, of Gymnasium (``CartPole-v1``), MODULE:NAME to
    import a module before, FILE.py:CLASS, a name of PettingZoo (``classic/tictactoe-v3``), or a
    module with a function ``parallel_env`` or ``env`` (``mpe2.simple_spread_v3``).
    """

    type_: str
    args: dict[str, Any] = Field(default_factory=dict)


class Policy(Section):
    """A policy: its type, and keys of the algorithm's section that describe its network.

    ``type_`` is a name of ``register_policy``, or ``section``, whose ``args`` are all keys.
    """

    type_: str
    args: dict[str, Any] = Field(default_factory=dict)


class Trainer(Section):
    """An algorithm by its name, and keys of its section."""

    type_: str
    args: dict[str, Any] = Field(default_factory=dict)


def _identifier(value: Any) -> Any:
    identifier_text(value)
    return value


#: A version of a policy: its number, a tag, or a query with one stage or several.
PolicyIdentifier = Annotated[
    str | int | dict[str, Any] | list[dict[str, Any]], BeforeValidator(_identifier)
]


class ParameterDB(Section):
    """The database of a policy's versions, which its trainers' parameter server writes."""

    class Type(Enum):
        """Whether versions have metadata, by which queries choose."""

        FILESYSTEM = "FILESYSTEM"
        METADATA = "METADATA"

    type_: Annotated[Type, BeforeValidator(lambda value: of_enum(ParameterDB.Type, value))] = (
        Type.FILESYSTEM
    )
    #: The URL of a MongoDB that has the metadata; None: a file of SQLite beside the versions.
    database_mongodb: MongoOption | None = None
    #: How long after their last update metadata are forgotten; None: three days.
    database_expire_days: PositiveFloat | None = None

    def model_post_init(self, context: Any) -> None:
        """Refuse keys that do not belong to the type."""
        if self.type_ is not ParameterDB.Type.METADATA:
            require_effect(self, ("database_mongodb", "database_expire_days"), "type_: METADATA")


class InferenceStream(Section):
    """The way of an agent's observations to a policy, and of actions back."""

    class Type(Enum):
        """Where the policy is: in policy workers of the stream, or in the actor worker itself."""

        NAME = "NAME"
        INLINE = "INLINE"

    type_: Annotated[Type, BeforeValidator(lambda value: of_enum(InferenceStream.Type, value))]
    #: Without effect where the policy is inline.
    stream_name: str
    #: Of an inline policy.
    policy: Policy | None = None
    policy_name: PolicyName | None = None
    #: Seconds between two pulls of an inline policy; None: one at each reset of the environment.
    pull_interval_seconds: PositiveFloat | None = None
    #: Which version of an inline policy is pulled.
    policy_identifier: PolicyIdentifier = LATEST
    #: Of an inline policy.
    parameter_db: ParameterDB = Field(default_factory=ParameterDB)

    def model_post_init(self, context: Any) -> None:
        """Refuse keys that do not belong to the type."""
        if self.type_ is InferenceStream.Type.INLINE:
            if self.policy is None or self.policy_name is None:
                raise ValueError("an inline stream needs policy and policy_name")
        else:
            inline = ("policy", "policy_name", "pull_interval_seconds", *_OF_DATABASE)
            require_effect(self, inline, "type_: INLINE")


class SampleStream(Section):
    """The way of steps to a trainer."""

    class Type(Enum):
        """Which of the trainers that name the stream take the steps.

        One by the actor worker's index, each the next episode in turn, each all steps, or none.
        With ``NAME_MULTI_AGENT`` one by the index, too: the episodes of an environment's agents
        are sent together.
        """

        NAME = "NAME"
        NAME_MULTI_AGENT = "NAME_MULTI_AGENT"
        NAME_ROUND_ROBIN = "NAME_ROUND_ROBIN"
        NAME_BROADCAST = "NAME_BROADCAST"
        NULL = "NULL"

    type_: Annotated[Type, BeforeValidator(lambda value: of_enum(SampleStream.Type, value))]
    stream_name: str = ""
    #: Whether actors wait while a trainer does not keep up, or steps are dropped, and counted.
    when_full: Literal["block", "drop"] = "block"

    @property
    def is_of_index(self) -> bool:
        """Whether an actor worker's index says which one of several takes its steps."""
        return self.type_ in (SampleStream.Type.NAME, SampleStream.Type.NAME_MULTI_AGENT)

    def model_post_init(self, context: Any) -> None:
        """Refuse keys that do not belong to the type."""
        if self.type_ is SampleStream.Type.NULL:
            require_effect(self, ("when_full",), "a stream that has trainers")


def _stream(value: Any) -> Any:
    """Take a name for a stream of it."""
    return {"type_": "NAME", "stream_name": value} if isinstance(value, str) else value


def _names(value: Any) -> Any:
    """Take one name for a list of it."""
    return [value] if isinstance(value, str) else value


#: A stream, or the name of one.
Inference = Annotated[InferenceStream, BeforeValidator(_stream)]
Sample = Annotated[SampleStream, BeforeValidator(_stream)]


class AgentSpec(AgentSamples):
    """Which agents of an environment choose by which stream, and where their steps go, and how.

    The first specification counts whose ``index_regex`` matches all of an agent's name, or of its
    index in its environment, written as a number.
    """

    index_regex: str
    inference_stream_idx: NonNegativeInt
    #: One stream, or several: each step goes to each of them.
    sample_stream_idx: NonNegativeInt | Annotated[list[NonNegativeInt], Field(min_length=1)]
    #: Actions are the most probable ones, and no samples.
    deterministic_action: bool = False

    @property
    def sample_streams(self) -> list[int]:
        """The places of its sample streams."""
        found = self.sample_stream_idx
        return found if isinstance(found, list) else [found]

    @field_validator("index_regex")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from error
        return value


class WorkerInformation(Section):
    """What belongs together in a trial: workers end when all keys that they watch are gone.

    A worker keeps its ``host_key`` alive as long as it runs. With keys, its end with status 0 is
    not the end of the trial.
    """

    host_key: str | None = None
    watch_keys: Annotated[list[str], BeforeValidator(_names)] = Field(default_factory=list)
    #: Of the worker's run at Weights & Biases; None for the defaults.
    wandb_entity: str | None = None
    wandb_project: str | None = None
    wandb_group: str | None = None
    wandb_job_type: str | None = None
    wandb_name: str | None = None


class Worker(Section):
    """What all workers may have."""

    worker_info: WorkerInformation = Field(default_factory=WorkerInformation)


class ActorWorker(Worker):
    """Holds environments, and acts in them.

    It has ``ring_size`` environments, which step together: one evaluation of a policy chooses for
    all agents that want an action of it.
    """

    env: Environment
    inference_streams: list[Inference]
    sample_streams: list[Sample]
    agent_specs: list[AgentSpec]
    ring_size: PositiveInt = 1
    #: Episodes are cut off after so many steps of an agent.
    max_num_steps: PositiveInt | None = None
    #: Its episodes go to evaluation managers, and no trainer gets a step of them.
    is_evaluation: bool = False
    #: Names the curriculum whose stage its environments are reset with, of several.
    curriculum_config: Curriculum | None = None

    def inference_of(self, spec: AgentSpec) -> InferenceStream | None:
        """Return the inference stream of a specification, if there is one at its place."""
        return dict(enumerate(self.inference_streams)).get(spec.inference_stream_idx)

    def samples_of(self, spec: AgentSpec) -> list[SampleStream]:
        """Return the sample streams of a specification that there are at its places."""
        streams = dict(enumerate(self.sample_streams))
        return [streams[place] for place in spec.sample_streams if place in streams]


class PolicyWorker(Worker):
    """Answers the requests of an inference stream with a version of a policy."""

    policy_name: PolicyName
    inference_stream: Inference
    policy: Policy
    policy_identifier: PolicyIdentifier = LATEST
    parameter_db: ParameterDB = Field(default_factory=ParameterDB)


class TrainerWorker(Worker):
    """Learns a policy from the steps of a sample stream."""

    policy_name: PolicyName
    trainer: Annotated[
        Trainer, BeforeValidator(lambda v: {"type_": v} if isinstance(v, str) else v)
    ]
    policy: Policy
    sample_stream: Sample
    parameter_db: ParameterDB = Field(default_factory=ParameterDB)
    #: A version is tagged, and so kept, after so many seconds, and after so many updates.
    push_frequency_seconds: PositiveFloat | None = None
    push_frequency_steps: PositiveInt | None = None

    @property
    def takes(self) -> SampleStream:
        """The stream whose steps it takes."""
        return self.sample_stream


class BufferWorker(Worker):
    """Stores the steps of a sample stream, in the place of the trainers of another one.

    These draw from the buffers of their stream, and store nothing themselves.
    """

    from_sample_stream: Sample
    to_sample_stream: Sample

    @property
    def takes(self) -> SampleStream:
        """The stream whose steps it takes."""
        return self.from_sample_stream


class EvalManager(Worker):
    """Evaluates one version of a policy after another, which has its ``tag`` meanwhile.

    It is a part of the policy's parameter server, and no process of its own.
    """

    policy_name: PolicyName
    eval_sample_stream: Sample
    #: Policy workers and inline streams with this ``policy_identifier`` play the version.
    tag: EvalTag
    #: The tag moves after so many episodes of a version, and after so many seconds.
    eval_games_per_version: PositiveInt = 100
    eval_time_per_version_seconds: PositiveFloat | None = None
    #: Where newer versions are.
    eval_target_tag: str = LATEST
    #: Stages of all environments, which go by the means of evaluated versions.
    curriculum_config: Curriculum | None = None

    def model_post_init(self, context: Any) -> None:
        """Refuse keys: they are of processes."""
        require_effect(
            self.worker_info,
            ("host_key", "watch_keys"),
            "a process: an evaluation manager is a part of its policy's parameter server, which "
            "has the keys of the trainers",
        )


class PopulationManager(Worker):
    """Lets policies of a population learn from one another, or from their own past versions."""

    #: The names of the policies: one for self_play, two or more for others.
    population: Annotated[list[PolicyName], Field(min_length=1)]
    population_algorithm: Annotated[
        PopulationAlgorithm, BeforeValidator(lambda v: {"type_": v} if isinstance(v, str) else v)
    ]
    #: Episodes of evaluations, and of past versions, are reported to it; None: the algorithm's args
    #: name other streams.
    population_sample_stream: Sample | None = None
    #: By policy: keys of the trainer's args, in their place.
    initial_hyperparams: dict[str, dict[str, Any]] = Field(default_factory=dict)


class ExperimentConfig(Section):
    """The configurations of all workers."""

    actors: list[ActorWorker] = Field(default_factory=list)
    policies: list[PolicyWorker] = Field(default_factory=list)
    buffers: list[BufferWorker] = Field(default_factory=list)
    trainers: list[TrainerWorker] = Field(default_factory=list)
    eval_managers: list[EvalManager] = Field(default_factory=list)
    population_manager: list[PopulationManager] = Field(default_factory=list)
    #: A trial is stopped when it has run for so long.
    timeout_seconds: PositiveInt = 3 * 24 * 3600
