"""The options of the servers. A field is a YAML key and a command-line flag at once."""

from typing import Self

from pydantic import model_validator

from relaax.address import Address, Addresses
from relaax.server.common.configuration.option_base import AccessOptions, Options, option
from relaax.server.common.configuration.option_kinds import (
    ActorModeOption,
    AddressesOption,
    AddressOption,
    BytesOption,
    CheckpointOption,
    CountOption,
    DirectoryOption,
    EnvironmentOption,
    ExploitOption,
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
    UrlOption,
    WhenFullOption,
    WholeOption,
    WorkersOption,
)

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

#: The help of the option of all that use S3.
AWS_ENDPOINT_URL = (
    "URL of an S3 store that is not Amazon's, such as MinIO or Ceph; by default that of the "
    "environment variable AWS_ENDPOINT_URL_S3, if it is set"
)

#: The help of the option of all that save to S3.
AWS_SPOOL = (
    "directory in which files wait until S3 has them; what a process cannot send, the next one "
    "does (default: $XDG_CACHE_HOME/relaax/spool, or ~/.cache/relaax/spool)"
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

#: The same of those that save checkpoints.
GIVE_UP_WITH_STORE = f"{GIVE_UP}; or when S3 does not answer at the start"

#: The help of the option of all that save checkpoints.
LIST_CHECKPOINTS = (
    "print a table of the checkpoints that there are, and exit; nothing is changed, and a training "
    "may go on meanwhile"
)

#: The help of an option of all that read the checkpoints of a training.
CHECKPOINTS_OF = (
    "directory of checkpoints; by default that of the parameter server's section in the YAML file"
)

#: The help of options of all that store steps.
EVICT_AFTER = "evict steps that are older than so many seconds; if omitted, only to make room"
EVICT_INTERVAL = "seconds between two times at which --evict-after is looked at"


class ParameterServerOptions(AccessOptions):
    """The options of ``relaax-parameter-server``."""

    bind: AddressOption = option(Address("localhost", 7000), "address to serve")
    log_level: LevelOption = option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = option(None, LOG_FILE)
    http_bind: AddressOption | None = option(None, HTTP_BIND)
    checkpoint_dir: DirectoryOption | None = option(None, "directory of checkpoints")
    checkpoint_aws_s3: S3Option | None = option(None, "AWS S3 bucket and key of checkpoints")
    checkpoint_interval: SecondsOption = option(900.0, "seconds between checkpoints")
    checkpoints_to_keep: CountOption = option(5, "how many of the latest checkpoints are kept")
    keep_best: WholeOption = option(
        1,
        "how many of the best checkpoints are kept, too: by the scores of evaluations, or else by "
        "the mean return of the training when they were saved",
    )
    restore: RestoreOption = option(
        "latest", "which checkpoint to begin with: the latest, the N-th before it, the best, a step"
    )
    list_checkpoints: SwitchOption = option(False, LIST_CHECKPOINTS)
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
    aws_keys: FileOption | None = option(
        None,
        "YAML file with the keys 'access' and 'secret' for AWS S3; without it boto3 looks where "
        "it always does: environment, ~/.aws, the machine's role",
    )
    aws_endpoint_url: UrlOption | None = option(None, AWS_ENDPOINT_URL)
    aws_spool: DirectoryOption | None = option(None, AWS_SPOOL)
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
        "been away for so long: it may have ended with the training meanwhile; or when S3 does not "
        "answer at the start",
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


class ReplayServerOptions(AccessOptions):
    """The options of ``relaax-replay-server``."""

    bind: AddressOption = option(
        Address("localhost", 7003), "address at which workers deliver and the learner draws"
    )
    parameter_server: ParameterServerOption = option(
        Addresses([Address("localhost", 7000)]), PARAMETER_SERVER
    )
    log_level: LevelOption = option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = option(None, LOG_FILE)
    http_bind: AddressOption | None = option(None, HTTP_BIND)
    give_up: SecondsOption = option(3600.0, GIVE_UP_WITH_STORE)
    replay_servers: AddressesOption | None = option(
        None,
        f"addresses of all replay servers, this one included: it stores its share{FROM_LEARNER}",
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
    aws_keys: FileOption | None = option(
        None, "YAML file with the keys 'access' and 'secret' for AWS S3"
    )
    aws_endpoint_url: UrlOption | None = option(None, AWS_ENDPOINT_URL)
    aws_spool: DirectoryOption | None = option(None, AWS_SPOOL)
    lease: SecondsOption = option(
        60.0, "forget a worker that has delivered nothing for so many seconds"
    )
    evict_after: SecondsOption | None = option(None, EVICT_AFTER)
    evict_interval: SecondsOption = option(10.0, EVICT_INTERVAL)

    @property
    def own_name(self) -> str:
        """``name``, the default filled in."""
        return self.name or f"{self.bind.host}-{self.bind.port}"


class LearnerOptions(AccessOptions):
    """The options of ``relaax-learner``."""

    bind: AddressOption = option(
        Address("localhost", 7002), "address at which workers deliver experience"
    )
    parameter_server: ParameterServerOption = option(
        Addresses([Address("localhost", 7000)]), PARAMETER_SERVER
    )
    log_level: LevelOption = option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = option(None, LOG_FILE)
    http_bind: AddressOption | None = option(None, HTTP_BIND)
    give_up: SecondsOption = option(3600.0, GIVE_UP_WITH_STORE)
    checkpoint_dir: DirectoryOption | None = option(
        None, "directory of the learner's own checkpoints, another one than the parameter server's"
    )
    checkpoint_aws_s3: S3Option | None = option(None, "AWS S3 bucket and key of checkpoints")
    checkpoint_interval: SecondsOption = option(900.0, "seconds between checkpoints")
    checkpoints_to_keep: CountOption = option(5, "how many of the latest checkpoints are kept")
    keep_best: WholeOption = option(
        1, "how many of the checkpoints with the best scores of evaluations are kept, too"
    )
    restore: RestoreOption = option(
        "latest", "which checkpoint to begin with: the latest, the N-th before it, the best, a step"
    )
    list_checkpoints: SwitchOption = option(False, LIST_CHECKPOINTS)
    aws_keys: FileOption | None = option(
        None, "YAML file with the keys 'access' and 'secret' for AWS S3"
    )
    aws_endpoint_url: UrlOption | None = option(None, AWS_ENDPOINT_URL)
    aws_spool: DirectoryOption | None = option(None, AWS_SPOOL)
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
    save_replay: SwitchOption = option(
        False,
        "save the stored steps, too, whenever a checkpoint is saved; those of replay servers have "
        "places of their own",
    )
    lease: SecondsOption = option(
        60.0, "forget a worker that has delivered nothing for so many seconds"
    )
    evict_after: SecondsOption | None = option(None, EVICT_AFTER)
    evict_interval: SecondsOption = option(10.0, EVICT_INTERVAL)


class ActorOptions(AccessOptions):
    """The options of ``relaax-actor``."""

    parameter_server: ParameterServerOption = option(
        Addresses([Address("localhost", 7000)]), PARAMETER_SERVER
    )
    learner: AddressOption = option(
        Address("localhost", 7002), "address at which the learner takes experience"
    )
    replay_servers: AddressesOption | None = option(
        None, f"addresses of the replay servers, to which steps go instead{FROM_LEARNER}"
    )
    when_full: WhenFullOption = option("wait", WHEN_FULL)
    log_level: LevelOption = option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = option(None, LOG_FILE)
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
    record_video: DirectoryOption | None = option(
        None, "record episodes of the first actor as MP4 files here (needs relaax[video])"
    )
    record_every: CountOption = option(
        10, "record every so many-th episode, beginning with the first"
    )
    max_videos: CountOption = option(10, "keep so many of the newest files")


#: What to write in the place of options that there were.
REPLACED = {
    "--inference": "write '--workers: auto' for what was 'batched'; leave it out, or write "
    "'--workers: connection', for what was 'inline'",
}


class RlxServerOptions(AccessOptions):
    """The options of ``relaax-rlx-server``."""

    bind: AddressOption = option(Address("localhost", 7001), "address to serve")
    parameter_server: ParameterServerOption = option(
        Addresses([Address("localhost", 7000)]), PARAMETER_SERVER
    )
    log_level: LevelOption = option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = option(None, LOG_FILE)
    http_bind: AddressOption | None = option(None, HTTP_BIND)
    give_up: SecondsOption = option(3600.0, GIVE_UP)
    workers: WorkersOption = option(
        "connection",
        "how many processes serve the environments: 'connection' forks one for each connection; a "
        "number, or 'auto' (one for each core, one with a GPU), forks them once and shares all "
        "connections among them, which is faster and takes less memory with many of them",
    )
    learner: AddressOption = option(
        Address("localhost", 7002),
        "address of the learner, for algorithms that have one",
    )
    replay_servers: AddressesOption | None = option(
        None, f"addresses of the replay servers, to which steps go instead{FROM_LEARNER}"
    )
    when_full: WhenFullOption = option("wait", WHEN_FULL)
    timeout: SecondsOption | None = option(
        None,
        "close a connection at the first end of an episode after this many seconds, so that a "
        "load balancer can send the client elsewhere; no need to use it on a local run",
    )
    drain: PauseOption = option(
        20.0,
        "at SIGTERM take no more connections, and close each at the end of an episode, for so many "
        "seconds; 0 closes all at once, as Ctrl-C does",
    )
    worker_timeout: SecondsOption = option(
        300.0, "kill a worker that does nothing for so long; its clients come back to another one"
    )
    worker_memory: MebibytesOption | None = option(
        None,
        "free memory that the first connection needs; later ones need the mean of those that are "
        "served. Unless given: 128 with a worker of its own, 1 in a shared one, or what states of "
        "a rollout take, if that is more",
    )
    message_timeout: SecondsOption = option(
        30.0, "close a connection when a message takes longer than this, in either direction"
    )
    environments_without_certificate: SwitchOption = option(
        False,
        "with --tls-ca: environments need no certificate of their own; their tokens say that they "
        "may play",
    )
    hello_timeout: SecondsOption = option(
        10.0,
        "close a connection that has said nothing for so long, or not shown its token; until then "
        "it costs no worker",
    )
    max_connections: CountOption = option(
        4096, "how many connections are served, at most; further ones are closed"
    )
    max_connections_per_address: CountOption = option(
        4096,
        "how many of them may come from one address, at most; behind a load balancer all do",
    )
    max_message_rate: CountOption = option(
        20_000, "close a connection that sends more messages in a second"
    )
    max_metric_rate: CountOption = option(
        1000,
        "how many metrics are read in a second of a connection; a client that sends more waits",
    )
    max_episode_steps: CountOption | None = option(
        None,
        "close a connection one of whose episodes has more steps; by default an episode may go on "
        "for ever",
    )
    seed: WholeOption | None = option(
        None,
        "where the random numbers of this server's workers begin, another number for each RLX "
        "server; by default it is made of the host name and the port",
    )
    max_frame_bytes: BytesOption | None = option(
        None,
        "close a connection whose message is larger; by default some times what its observations "
        "have, and no less than 64 KiB",
    )
    max_environments: CountOption = option(
        1024, "how many environments one connection may carry, at most"
    )
    exploit: ExploitOption | None = option(
        None,
        "serve a checkpoint, by default the latest, without learning and without a parameter "
        "server: actions are the policy's most probable ones",
    )
    stochastic: SwitchOption = option(
        False, "with --exploit: actions are samples of the policy, as in training"
    )
    checkpoint_dir: DirectoryOption | None = option(None, f"with --exploit: {CHECKPOINTS_OF}")
    checkpoint_aws_s3: S3Option | None = option(
        None, "with --exploit: AWS S3 bucket and key of checkpoints, likewise"
    )
    aws_keys: FileOption | None = option(
        None, "with --exploit: YAML file with the keys 'access' and 'secret' for AWS S3"
    )
    aws_endpoint_url: UrlOption | None = option(None, f"with --exploit: {AWS_ENDPOINT_URL}")


class ExportOptions(Options):
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
    checkpoint_dir: DirectoryOption | None = option(None, CHECKPOINTS_OF)
    checkpoint_aws_s3: S3Option | None = option(
        None, "AWS S3 bucket and key of checkpoints, likewise"
    )
    aws_keys: FileOption | None = option(
        None, "YAML file with the keys 'access' and 'secret' for AWS S3"
    )
    aws_endpoint_url: UrlOption | None = option(None, AWS_ENDPOINT_URL)
    log_level: LevelOption = option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = option(None, LOG_FILE)
