"""The options of the servers. A field is a YAML key and a command-line flag at once."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from relaax.address import Address, Addresses
from relaax.server.common.configuration.option_kinds import (
    ActorModeOption,
    AddressesOption,
    AddressOption,
    BytesOption,
    CountOption,
    DirectoryOption,
    EnvironmentOption,
    FetchModeOption,
    FileOption,
    JsonOption,
    LevelOption,
    MebibytesOption,
    NameOption,
    NiceOption,
    ParameterServerOption,
    PauseOption,
    RestoreOption,
    ReturnOption,
    S3Option,
    SecondsOption,
    SeedOption,
    ShardOption,
    SwitchOption,
    WhenFullOption,
    WholeOption,
    WorkersOption,
)

#: The protocol's own default. Not imported from there: that imports numpy, which would read the
#: environment before the RLX server has set its number of threads.
MAX_FRAME_BYTES = 64 * 1024 * 1024

#: The help of the option that all servers have.
LOG_FILE = (
    "write the log into this file, too, with the name of the process in each line; all servers may "
    "write into the same one"
)

#: The help of the option of all that answer operators.
HTTP_BIND = (
    "answer HTTP at this address: /healthz and /readyz say how the server is, /metrics has figures "
    "for Prometheus; by default there is no such port"
)

#: The help of an option of all that deliver steps.
WHEN_FULL = (
    "what happens to steps while the replay takes no more, because the learner does not keep up: "
    "'wait' lets environments wait, but for no more than five seconds where it does not answer at "
    "all; 'drop' never does; what is dropped is counted"
)

#: The help of the option of all that need the parameter server.
PARAMETER_SERVER = (
    "address of the parameter server, or of all its shards, the first one first; by default the "
    "--shards of its section in the YAML file"
)

#: The help of the option of all that end with the training.
GIVE_UP = (
    "end, with status 1, when the parameter server has been away for so long: it may have ended "
    "with the training meanwhile"
)

#: The help of options of all that store steps.
EVICT_AFTER = "evict steps that are older than so many seconds; if omitted, only to make room"
EVICT_INTERVAL = "seconds between two times at which --evict-after is looked at"


class _Options(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        alias_generator=lambda name: f"--{name.replace('_', '-')}",
    )

    @model_validator(mode="after")
    def _one_place_for_checkpoints(self) -> Self:
        places = ("checkpoint_dir", "checkpoint_aws_s3")
        if all(getattr(self, place, None) is not None for place in places):
            raise ValueError("give --checkpoint-dir or --checkpoint-aws-s3, not both")
        return self


def _option(default: Any, description: str) -> Any:
    return Field(default, description=description)


class ParameterServerOptions(_Options):
    """The options of ``relaax-parameter-server``."""

    bind: AddressOption = _option(Address("localhost", 7000), "address to serve")
    log_level: LevelOption = _option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = _option(None, LOG_FILE)
    http_bind: AddressOption | None = _option(None, HTTP_BIND)
    checkpoint_dir: DirectoryOption | None = _option(None, "directory of checkpoints")
    checkpoint_aws_s3: S3Option | None = _option(None, "AWS S3 bucket and key of checkpoints")
    checkpoint_interval: SecondsOption = _option(900.0, "seconds between checkpoints")
    checkpoints_to_keep: CountOption = _option(5, "how many of the latest checkpoints are kept")
    keep_best: WholeOption = _option(
        1, "how many of the checkpoints with the best scores of evaluations are kept, too"
    )
    restore: RestoreOption = _option(
        "latest", "which checkpoint to begin with: the latest, the N-th before it, the best, a step"
    )
    metrics_dir: DirectoryOption | None = _option(None, "directory of TensorBoard event files")
    run_name: NameOption | None = _option(
        None,
        "name of the run in TensorBoard, a directory below --metrics-dir; by default that of the "
        "YAML file",
    )
    metrics_aws_s3: S3Option | None = _option(
        None, "AWS S3 bucket and key that the files of --metrics-dir are copied to"
    )
    wandb_project: NameOption | None = _option(
        None,
        "hand the metrics to this project of Weights & Biases, too; nothing is sent with the "
        "environment variable WANDB_MODE=offline",
    )
    aws_keys: FileOption | None = _option(
        None,
        "YAML file with the keys 'access' and 'secret' for AWS S3; without it boto3 looks where "
        "it always does: environment, ~/.aws, the machine's role",
    )
    goal_return: ReturnOption | None = _option(
        None, "stop when the mean return of the last episodes reaches this"
    )
    goal_episodes: CountOption = _option(100, "how many episodes --goal-return is the mean of")
    keep_serving: SwitchOption = _option(
        False, "when the training is over, go on serving its result until stopped"
    )
    replica_of: AddressOption | None = _option(
        None,
        "serve the values of the parameter server at this address, and hand all else to it; a "
        "replica keeps no checkpoints and writes no metrics",
    )
    shard: ShardOption | None = _option(
        None,
        "hold the I-th of N slices of the parameters; the first shard counts the steps, writes the "
        "metrics, and says when all save",
    )
    shards: AddressesOption | None = _option(
        None, "addresses of all shards, the first one first: the same for all of them"
    )
    give_up: SecondsOption = _option(
        3600.0,
        "end, with status 1, when what a replica copies, or the first shard for the others, has "
        "been away for so long: it may have ended with the training meanwhile",
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


#: What the description of an option ends with that the learner's section may give.
FROM_LEARNER = "; by default those of the learner's section in the YAML file"


class ReplayServerOptions(_Options):
    """The options of ``relaax-replay-server``."""

    bind: AddressOption = _option(
        Address("localhost", 7003), "address at which workers deliver and the learner draws"
    )
    parameter_server: ParameterServerOption = _option(
        Addresses([Address("localhost", 7000)]), PARAMETER_SERVER
    )
    log_level: LevelOption = _option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = _option(None, LOG_FILE)
    http_bind: AddressOption | None = _option(None, HTTP_BIND)
    give_up: SecondsOption = _option(3600.0, GIVE_UP)
    replay_servers: AddressesOption | None = _option(
        None,
        f"addresses of all replay servers, this one included: it stores its share{FROM_LEARNER}",
    )
    name: NameOption | None = _option(
        None,
        "name of this server in metrics, and of its directory below --checkpoint-dir; by default "
        "HOST-PORT of --bind",
    )
    checkpoint_dir: DirectoryOption | None = _option(
        None, "directory in which the stored steps are saved; if omitted, they are not"
    )
    checkpoint_aws_s3: S3Option | None = _option(
        None, "AWS S3 bucket and key under which the stored steps are saved"
    )
    checkpoint_interval: SecondsOption = _option(
        900.0, "seconds between two times at which the stored steps are saved"
    )
    aws_keys: FileOption | None = _option(
        None, "YAML file with the keys 'access' and 'secret' for AWS S3"
    )
    lease: SecondsOption = _option(
        60.0, "forget a worker that has delivered nothing for so many seconds"
    )
    evict_after: SecondsOption | None = _option(None, EVICT_AFTER)
    evict_interval: SecondsOption = _option(10.0, EVICT_INTERVAL)

    @property
    def own_name(self) -> str:
        """``name``, the default filled in."""
        return self.name or f"{self.bind.host}-{self.bind.port}"


class LearnerOptions(_Options):
    """The options of ``relaax-learner``."""

    bind: AddressOption = _option(
        Address("localhost", 7002), "address at which workers deliver experience"
    )
    parameter_server: ParameterServerOption = _option(
        Addresses([Address("localhost", 7000)]), PARAMETER_SERVER
    )
    log_level: LevelOption = _option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = _option(None, LOG_FILE)
    http_bind: AddressOption | None = _option(None, HTTP_BIND)
    give_up: SecondsOption = _option(3600.0, GIVE_UP)
    checkpoint_dir: DirectoryOption | None = _option(
        None, "directory of the learner's own checkpoints, another one than the parameter server's"
    )
    checkpoint_aws_s3: S3Option | None = _option(None, "AWS S3 bucket and key of checkpoints")
    checkpoint_interval: SecondsOption = _option(900.0, "seconds between checkpoints")
    checkpoints_to_keep: CountOption = _option(5, "how many of the latest checkpoints are kept")
    keep_best: WholeOption = _option(
        1, "how many of the checkpoints with the best scores of evaluations are kept, too"
    )
    restore: RestoreOption = _option(
        "latest", "which checkpoint to begin with: the latest, the N-th before it, the best, a step"
    )
    aws_keys: FileOption | None = _option(
        None, "YAML file with the keys 'access' and 'secret' for AWS S3"
    )
    publish_interval: PauseOption = _option(0.3, "publish the parameters no more often than this")
    publish_every: CountOption | None = _option(
        None, "publish the parameters after so many steps of the learner, and not by the clock"
    )
    replay_servers: AddressesOption | None = _option(
        None, "addresses of the replay servers; without them the learner itself stores the steps"
    )
    prefetch: CountOption = _option(2, "how many batches are prepared ahead of the learner")
    prefetch_threads: CountOption = _option(
        1, "how many batches are drawn at a time: more than one where replay servers are far away"
    )
    nice: NiceOption = _option(
        10,
        "niceness of the learner's process, 0 to 19: what answers environments on the same "
        "machine comes first",
    )
    save_replay: SwitchOption = _option(
        False,
        "save the stored steps, too, whenever a checkpoint is saved; those of replay servers have "
        "places of their own",
    )
    lease: SecondsOption = _option(
        60.0, "forget a worker that has delivered nothing for so many seconds"
    )
    evict_after: SecondsOption | None = _option(None, EVICT_AFTER)
    evict_interval: SecondsOption = _option(10.0, EVICT_INTERVAL)


class ActorOptions(_Options):
    """The options of ``relaax-actor``."""

    parameter_server: ParameterServerOption = _option(
        Addresses([Address("localhost", 7000)]), PARAMETER_SERVER
    )
    learner: AddressOption = _option(
        Address("localhost", 7002), "address at which the learner takes experience"
    )
    replay_servers: AddressesOption | None = _option(
        None, f"addresses of the replay servers, to which steps go instead{FROM_LEARNER}"
    )
    when_full: WhenFullOption = _option("wait", WHEN_FULL)
    log_level: LevelOption = _option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = _option(None, LOG_FILE)
    env: EnvironmentOption | None = _option(
        None,
        "the environment: its name in Gymnasium, MODULE:NAME to import a module before, or "
        "FILE.py:CLASS for a class of your own",
    )
    env_kwargs: JsonOption = _option({}, "further arguments for the environment, as a JSON object")
    actors: CountOption = _option(1, "how many actors there are, each a process with its own")
    mode: ActorModeOption = _option(
        "training",
        "what the actors act for: 'training', or 'eval_deterministic' and 'eval_stochastic', from "
        "which nothing is learnt",
    )
    episodes: CountOption | None = _option(None, "stop after so many episodes of each actor")
    fetch_parameter_mode: FetchModeOption = _option(
        "step", "whether actors fetch the parameters by steps or by episodes"
    )
    fetch_parameter_interval: CountOption = _option(
        10, "fetch the parameters before each so many-th step, or episode"
    )
    limit_episode_length: CountOption | None = _option(
        None, "cut an episode off after so many steps"
    )
    seed: SeedOption | None = _option(
        None, "seed of the first actor and its environment; the next one gets N + 1"
    )
    record_video: DirectoryOption | None = _option(
        None, "record episodes of the first actor as MP4 files here (needs relaax[video])"
    )
    record_every: CountOption = _option(
        10, "record every so many-th episode, beginning with the first"
    )
    max_videos: CountOption = _option(10, "keep so many of the newest files")


#: What to write in the place of options that there were.
REPLACED = {
    "--inference": "write '--workers: auto' for what was 'batched'; leave it out, or write "
    "'--workers: connection', for what was 'inline'",
}


class RlxServerOptions(_Options):
    """The options of ``relaax-rlx-server``."""

    bind: AddressOption = _option(Address("localhost", 7001), "address to serve")
    parameter_server: ParameterServerOption = _option(
        Addresses([Address("localhost", 7000)]), PARAMETER_SERVER
    )
    log_level: LevelOption = _option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = _option(None, LOG_FILE)
    http_bind: AddressOption | None = _option(None, HTTP_BIND)
    give_up: SecondsOption = _option(3600.0, GIVE_UP)
    workers: WorkersOption = _option(
        "connection",
        "how many processes serve the environments: 'connection' forks one for each connection; a "
        "number, or 'auto' (one for each core, one with a GPU), forks them once and shares all "
        "connections among them, which is faster and takes less memory with many of them",
    )
    learner: AddressOption = _option(
        Address("localhost", 7002),
        "address of the learner, for algorithms that have one",
    )
    replay_servers: AddressesOption | None = _option(
        None, f"addresses of the replay servers, to which steps go instead{FROM_LEARNER}"
    )
    when_full: WhenFullOption = _option("wait", WHEN_FULL)
    timeout: SecondsOption | None = _option(
        None,
        "close a connection at the first end of an episode after this many seconds, so that a "
        "load balancer can send the client elsewhere; no need to use it on a local run",
    )
    drain: PauseOption = _option(
        20.0,
        "at SIGTERM take no more connections, and close each at the end of an episode, for so many "
        "seconds; 0 closes all at once, as Ctrl-C does",
    )
    worker_timeout: SecondsOption = _option(
        300.0, "kill a worker that does nothing for so long; its clients come back to another one"
    )
    worker_memory: MebibytesOption | None = _option(
        None,
        "free memory that the first connection needs; later ones need the mean of those that are "
        "served. Unless given: 128 with a worker of its own, 1 in a shared one, or what states of "
        "a rollout take, if that is more",
    )
    message_timeout: SecondsOption = _option(
        30.0, "close a connection when a message takes longer than this, in either direction"
    )

    seed: WholeOption | None = _option(
        None,
        "where the random numbers of this server's workers begin, another number for each RLX "
        "server; by default it is made of the host name and the port",
    )
    max_frame_bytes: BytesOption = _option(
        MAX_FRAME_BYTES, "close a connection whose message is larger"
    )
    max_environments: CountOption = _option(
        1024, "how many environments one connection may carry, at most"
    )
