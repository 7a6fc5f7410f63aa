"""The options of all commands but ``relaax-rlx-server``.

A field is a YAML key and a command-line flag at once.
"""

from typing import Self

from pydantic import model_validator

from relaax.address import Address
from relaax.configuration.option_base import (
    AccessOptions,
    CheckpointOptions,
    DeliveringOptions,
    FollowingOptions,
    LogOptions,
    ReadingOptions,
    S3Options,
    ServerOptions,
    StoringOptions,
    option,
)
from relaax.configuration.option_kinds import (
    ActorModeOption,
    AddressesOption,
    AddressOption,
    CheckpointOption,
    CountOption,
    DirectoryOption,
    EnvironmentOption,
    FetchModeOption,
    FileOption,
    JsonOption,
    NameOption,
    NiceOption,
    PauseOption,
    ReturnOption,
    S3Option,
    SecondsOption,
    SeedOption,
    ShardOption,
    SwitchOption,
    WholeOption,
)


class ParameterServerOptions(CheckpointOptions, ServerOptions):
    """The options of ``relaax-parameter-server``."""

    bind: AddressOption = option(Address("localhost", 7000), "address to serve")
    keep_best: WholeOption = option(
        1,
        "how many of the best checkpoints are kept, too: by the scores of evaluations, or else by "
        "the mean return of the training when they were saved",
    )
    metrics_dir: DirectoryOption | None = option(None, "directory of TensorBoard event files")
    run_name: NameOption | None = option(
        None,
        "name of the run in TensorBoard, a directory below --metrics-dir; by default that of the "
        "YAML file",
    )
    metrics_aws_s3: S3Option | None = option(
        None, "AWS S3 bucket and key that the files of --metrics-dir are copied to"
    )
    wandb_project: NameOption | None = option(
        None,
        "hand the metrics to this project of Weights & Biases, too; nothing is sent with the "
        "environment variable WANDB_MODE=offline",
    )
    max_client_metric_names: CountOption = option(
        1000, "how many names environments may give to metrics since the start; others are dropped"
    )
    max_client_metric_rate: CountOption = option(
        1000,
        "how many of these metrics are stored in a second, of all environments; others are dropped",
    )
    goal_return: ReturnOption | None = option(
        None, "stop when the mean return of the last episodes reaches this"
    )
    goal_episodes: CountOption = option(100, "how many episodes --goal-return is the mean of")
    keep_serving: SwitchOption = option(
        False, "when the training is over, go on serving its result until stopped"
    )
    replica_of: AddressOption | None = option(
        None,
        "serve the values of the parameter server at this address, and hand all else to it; a "
        "replica keeps no checkpoints and writes no metrics",
    )
    shard: ShardOption | None = option(
        None,
        "hold the I-th of N slices of the parameters; the first shard counts the steps, writes the "
        "metrics, and says when all save",
    )
    shards: AddressesOption | None = option(
        None, "addresses of all shards, the first one first: the same for all of them"
    )
    give_up: SecondsOption = option(
        3600.0,
        "end, with status 1, when what a replica copies, or the first shard for the others, has "
        "not answered for so long, since the start or since its last answer: it may have ended "
        "with the training meanwhile; or when S3 does not answer at the start",
    )

    @model_validator(mode="after")
    def _shard_of_shards(self) -> Self:
        if self.shard is None or self.shards is None:
            return self  # the rest may stand elsewhere
        if len(self.shards) != self.shard.count:
            raise ValueError(
                f"--shard {self.shard} needs {self.shard.count} addresses in --shards, not "
                f"{len(self.shards)}"
            )
        if self.replica_of is not None:
            raise ValueError("give --shard or --replica-of, not both: a shard has no replicas")
        return self

    @property
    def place(self) -> Address:
        """Where it listens: a shard at its own address, unless --bind says otherwise."""
        if self.shard is None or self.shards is None or "bind" in self.model_fields_set:
            return self.bind
        return self.shards[self.shard.index - 1]


class ReplayServerOptions(StoringOptions, S3Options, FollowingOptions):
    """The options of ``relaax-replay-server``."""

    bind: AddressOption = option(
        Address("localhost", 7003), "address at which workers deliver and the learner draws"
    )
    replay_servers: AddressesOption | None = option(
        None,
        "addresses of all replay servers, this one included: it stores its share; by default those "
        "of the learner's section in the YAML file",
    )
    name: NameOption | None = option(
        None,
        "name of this server in metrics, and of its directory below --checkpoint-dir; by default "
        "HOST-PORT of --bind",
    )
    checkpoint_dir: DirectoryOption | None = option(
        None, "directory in which the stored steps are saved; if omitted, they are not"
    )
    checkpoint_aws_s3: S3Option | None = option(
        None, "AWS S3 bucket and key under which the stored steps are saved"
    )
    checkpoint_interval: SecondsOption = option(
        900.0, "seconds between two times at which the stored steps are saved"
    )

    @property
    def own_name(self) -> str:
        """``name``, the default filled in."""
        return self.name or f"{self.bind.host}-{self.bind.port}"


class LearnerOptions(CheckpointOptions, StoringOptions, FollowingOptions):
    """The options of ``relaax-learner``."""

    bind: AddressOption = option(
        Address("localhost", 7002), "address at which workers deliver experience"
    )
    checkpoint_dir: DirectoryOption | None = option(
        None, "directory of the learner's own checkpoints, another one than the parameter server's"
    )
    publish_interval: PauseOption = option(0.3, "publish the parameters no more often than this")
    publish_every: CountOption | None = option(
        None, "publish the parameters after so many steps of the learner, and not by the clock"
    )
    replay_servers: AddressesOption | None = option(
        None, "addresses of the replay servers; without them the learner itself stores the steps"
    )
    prefetch: CountOption = option(2, "how many batches are prepared ahead of the learner")
    prefetch_threads: CountOption = option(
        1, "how many batches are drawn at a time: more than one where replay servers are far away"
    )
    nice: NiceOption = option(
        10,
        "niceness of the learner's process, 0 to 19: what answers environments on the same "
        "machine comes first",
    )
    start_afresh: SwitchOption = option(
        False,
        "let what this learner publishes replace what is published, also where it does not "
        "continue that; by default it is refused then",
    )
    save_replay: SwitchOption | None = option(
        None,
        "save the stored steps, too, whenever a checkpoint is saved; by default they are, where "
        "all of a full replay fit on the disk of --checkpoint-dir and, as copies, in the memory; "
        "those of replay servers have places of their own",
    )


class ActorOptions(DeliveringOptions, LogOptions, AccessOptions):
    """The options of ``relaax-actor``."""

    env: EnvironmentOption | None = option(
        None,
        "the environment: its name in Gymnasium, MODULE:NAME to import a module before, or "
        "FILE.py:CLASS for a class of your own",
    )
    env_kwargs: JsonOption = option({}, "further arguments for the environment, as a JSON object")
    actors: CountOption = option(1, "how many actors there are, each a process with its own")
    mode: ActorModeOption = option(
        "training",
        "what the actors act for: 'training', or 'eval_deterministic' and 'eval_stochastic', from "
        "which nothing is learnt",
    )
    episodes: CountOption | None = option(None, "stop after so many episodes of each actor")
    fetch_parameter_mode: FetchModeOption = option(
        "step", "whether actors fetch the parameters by steps or by episodes"
    )
    fetch_parameter_interval: CountOption = option(
        10, "fetch the parameters before each so many-th step, or episode"
    )
    limit_episode_length: CountOption | None = option(
        None, "cut an episode off after so many steps"
    )
    seed: SeedOption | None = option(
        None, "seed of the first actor and its environment; the next one gets N + 1"
    )
    environment_timeout: PauseOption = option(
        600.0,
        "make an environment again that takes longer for a step or a start of an episode (0: wait "
        "for ever)",
    )
    record_video: DirectoryOption | None = option(
        None, "record episodes of the first actor as MP4 files here (needs relaax[video])"
    )
    record_every: CountOption = option(
        10, "record every so many-th episode, beginning with the first"
    )
    max_videos: CountOption = option(10, "keep so many of the newest files")


class ExportOptions(ReadingOptions, LogOptions):
    """The options of ``relaax-export``."""

    checkpoint: CheckpointOption = option("latest", "which checkpoint is written")
    onnx: FileOption | None = option(
        None, "write the policy as an ONNX file here (needs relaax[export])"
    )
    saved_model: DirectoryOption | None = option(
        None, "write the policy as a TensorFlow SavedModel into this directory"
    )
    float_images: SwitchOption = option(
        False, "images are float32 as environments send them, and not bytes"
    )
