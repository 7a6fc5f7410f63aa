"""The options of each command that no other one has, or that have another meaning there."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from relaax.address import Address
from relaax.configuration import option_kinds as kinds
from relaax.configuration.option_base import (
    IN_ACCESS,
    IN_LEARNER,
    CheckpointOptions,
    DeliveringOptions,
    FollowingOptions,
    LogOptions,
    PlaceOptions,
    ReadingOptions,
    SavingOptions,
    ServerOptions,
    StoringOptions,
    WandbOptions,
    bind_at,
    option,
)
from relaax.errors import ConfigurationError

#: Advice for options that there were.
REPLACED = {
    "--inference": "write '--workers: auto' in place of 'batched'; leave it out, or write "
    "'--workers: connection', in place of 'inline'"
}


_OF_METADATA = ("database_mongodb", "database_expire_days")
_PUSHES = ("push_frequency_seconds", "push_frequency_steps", "push_initial")


class ParameterServerOptions(CheckpointOptions, ServerOptions, WandbOptions):
    """The options of ``relaax-parameter-server``."""

    bind: kinds.AddressOption = bind_at(7000)
    give_up: kinds.SecondsOption = option(
        3600.0,
        "end, with status 1, when the parameter server that a replica copies, or the first shard "
        "for the others, has not answered for so long, since the start or since its last answer: "
        "it may have ended with the training meanwhile; or when S3 does not answer at the start",
    )
    metrics_dir: kinds.DirectoryOption | None = option(None, "directory of TensorBoard event files")
    run_name: kinds.NameOption | None = option(
        None,
        "name of the run in TensorBoard, a directory below --metrics-dir; by default the name of "
        "the YAML file",
    )
    metrics_aws_s3: kinds.S3Option | None = option(
        None, "AWS S3 bucket and key that the files of --metrics-dir are copied to"
    )
    wandb_project: kinds.NameOption | None = option(
        None,
        "hand the metrics to this project of Weights & Biases, too; nothing is sent with the "
        "environment variable WANDB_MODE=offline",
    )
    max_client_metric_names: kinds.CountOption = option(
        1000, "how many names environments may give to metrics since the start; others are dropped"
    )
    max_client_metric_rate: kinds.CountOption = option(
        1000,
        "how many of these metrics are stored in a second, of all environments; others are dropped",
    )
    goal_return: kinds.ReturnOption | None = option(
        None, "stop when the mean return of the last episodes reaches this"
    )
    goal_episodes: kinds.CountOption = option(100, "how many episodes --goal-return is the mean of")
    keep_serving: kinds.SwitchOption = option(
        False, "when the training is over, go on serving its result until stopped"
    )
    database_dir: kinds.DirectoryOption | None = option(
        None,
        "directory of parameter databases: versions of the policy are pushed to its own while it "
        "is learnt, and other processes can pull them by a number, a tag or a query",
    )
    database_aws_s3: kinds.S3Option | None = option(
        None, "AWS S3 bucket and key of parameter databases"
    )
    database_name: kinds.DatabaseNameOption | None = option(
        None, "the name of the policy's database, its folder there"
    )
    database_type: kinds.DatabaseTypeOption = option(
        "filesystem",
        "whether versions have 'metadata', running means of episode information that queries "
        "choose by, beside their values in a 'filesystem'",
    )
    database_mongodb: Annotated[kinds.MongoOption | None, Field(exclude=True)] = option(
        None,
        "URL of a MongoDB in which the metadata are, with --database-type metadata; by default "
        "they are in a file of SQLite beside the values (needs relaax[mongodb])",
    )
    database_expire_days: kinds.DaysOption = option(
        3.0,
        "how long after their last update metadata are forgotten, with --database-type metadata",
    )
    push_frequency_seconds: kinds.SecondsOption | None = option(
        None,
        "tag the version that is pushed after so many seconds with the time, so that it is kept; "
        "of versions without a tag the newest are kept",
    )
    push_frequency_steps: kinds.CountOption | None = option(
        None, "the same after so many updates of the policy"
    )
    push_initial: kinds.SwitchOption = option(
        False, "push the parameters that the training begins with, too, as version 0 with a tag"
    )
    eval_managers: kinds.EvalManagersOption = option(
        {},
        "tags of versions under evaluation, as a JSON object by tag: each moves to a newer version "
        "after so many episodes of one, whose means are metrics and metadata then",
    )
    replica_of: kinds.AddressOption | None = option(
        None,
        "serve the values of the parameter server at this address, and hand all else to it; a "
        "replica keeps no checkpoints and writes no metrics",
    )
    shard: kinds.ShardOption | None = option(
        None,
        "hold the I-th of N slices of the parameters; the first shard counts the steps, writes the "
        "metrics, and says when all save",
    )
    shards: kinds.AddressesOption | None = option(
        None, "addresses of all shards, the first one first: the same for all of them"
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

    def require_agreement(self) -> None:
        """See Options: a parameter database has a place and a name, and whole values."""
        places = ("database_dir", "database_aws_s3")
        found = [name for name in places if getattr(self, name) is not None]
        if not found:
            self.require_none_of(
                ("database_name", "database_type", *_OF_METADATA, "eval_managers", *_PUSHES),
                "no effect without --database-dir or --database-aws-s3",
            )
            return
        if len(found) > 1:
            raise ConfigurationError("give --database-dir or --database-aws-s3, not both")
        if self.database_type != "metadata":
            self.require_none_of(_OF_METADATA, "no effect without --database-type metadata")
        if self.database_name is None:
            raise ConfigurationError("--database-name: is missing: EXPERIMENT/TRIAL/POLICY")
        if self.replica_of is not None or self.shard is not None:
            self.require_none_of(
                places, "a replica or a shard has no parameter database: its writer has all values"
            )

    @property
    def place(self) -> Address:
        """Where it listens: a shard at its own address, unless --bind says otherwise."""
        if self.shard is None or self.shards is None or "bind" in self.model_fields_set:
            return self.bind
        return self.shards[self.shard.index - 1]


class RlxServerOptions(ReadingOptions, DeliveringOptions, FollowingOptions):
    """The options of ``relaax-rlx-server``."""

    which: ClassVar[str] = "--exploit"

    bind: kinds.AddressOption = bind_at(7001)
    workers: kinds.WorkersOption = option(
        "connection",
        "how many processes serve the environments: 'connection' forks one for each connection; a "
        "number, or 'auto' (one for each core, one with a GPU), forks them once and shares all "
        "connections among them, which is faster and takes less memory with many of them",
    )
    seed: kinds.WholeOption | None = option(
        None,
        "where the random numbers of this server's workers begin, another number for each RLX "
        "server; by default it is made of the host name and the port",
    )
    timeout: kinds.SecondsOption | None = option(
        None,
        "close a connection at the first end of an episode after this many seconds, so that a "
        "load balancer can send the client elsewhere; no need to use it on a local run",
    )
    drain: kinds.PauseOption = option(
        20.0,
        "at SIGTERM take no more connections, and close each at the end of an episode, for so many "
        "seconds; 0 closes all at once, as Ctrl-C does",
    )
    worker_timeout: kinds.SecondsOption = option(
        300.0, "kill a worker that does nothing for so long; its clients come back to another one"
    )
    worker_memory: kinds.MebibytesOption | None = option(
        None,
        "free memory that the first connection needs; later ones need the mean of those that are "
        "served. Unless given: 128 with a worker of its own, 1 in a shared one, or the memory of a "
        "rollout's states, if that is more",
    )
    message_timeout: kinds.SecondsOption = option(
        30.0, "close a connection when a message takes longer than this, in either direction"
    )
    environments_without_certificate: Annotated[kinds.SwitchOption, IN_ACCESS] = option(
        False,
        "with --tls-ca: environments need no certificate of their own; their tokens say that they "
        "may play",
    )
    hello_timeout: kinds.SecondsOption = option(
        10.0,
        "close a connection that has said nothing for so long, or not shown its token; until then "
        "it costs no worker",
    )
    max_connections: kinds.CountOption = option(
        4096, "how many connections are served, at most; further ones are closed"
    )
    max_connections_per_address: kinds.CountOption = option(
        4096, "how many of them may come from one address, at most; behind a load balancer all do"
    )
    max_message_rate: kinds.CountOption = option(
        20_000, "close a connection that sends more messages in a second"
    )
    max_metric_rate: kinds.CountOption = option(
        1000,
        "how many metrics are read in a second of a connection; a client that sends more waits",
    )
    max_episode_steps: kinds.CountOption | None = option(
        None,
        "close a connection one of whose episodes has more steps; by default an episode may go on "
        "for ever",
    )
    max_frame_bytes: kinds.BytesOption | None = option(
        None,
        "close a connection whose message is larger; by default some times the size of its "
        "observations, and no less than 64 KiB",
    )
    max_environments: kinds.CountOption = option(
        1024, "how many environments one connection may carry, at most"
    )
    exploit: kinds.ExploitOption | None = option(
        None,
        "serve a checkpoint, by default the latest, without learning and without a parameter "
        "server: actions are the policy's most probable ones",
    )
    stochastic: kinds.SwitchOption = option(
        False, "with --exploit: actions are samples of the policy, as in training"
    )

    def require_agreement(self) -> None:
        """See Options: options that have an effect with ``--exploit`` alone, or without it."""
        if self.exploit is not None:
            self.require_none_of(
                ("inference_servers",), "with --exploit this server itself has the policy"
            )
        without_effect = ["stochastic", *PlaceOptions.model_fields] if self.exploit is None else []
        for name in without_effect:
            if getattr(self, name):
                raise ConfigurationError(
                    f"--{name.replace('_', '-')}: has no effect without --exploit; the parameter "
                    "server and the learner read and write the checkpoints of a training"
                )


class ReplayServerOptions(StoringOptions, SavingOptions, FollowingOptions, WandbOptions):
    """The options of ``relaax-replay-server``."""

    bind: kinds.AddressOption = bind_at(7003)
    checkpoint_dir: kinds.DirectoryOption | None = option(
        None, "directory in which the stored steps are saved; if omitted, they are not"
    )
    replay_servers: Annotated[kinds.AddressesOption | None, IN_LEARNER] = option(
        None,
        "addresses of all replay servers, this one included: it stores its share; by default the "
        "addresses in the learner's section of the YAML file",
    )
    name: kinds.NameOption | None = option(
        None,
        "name of this server in metrics, and of its directory below --checkpoint-dir; by default "
        "HOST-PORT of --bind",
    )

    @property
    def own_name(self) -> str:
        """``name``, the default filled in."""
        return self.name or f"{self.bind.host}-{self.bind.port}"


class InferenceServerOptions(FollowingOptions, WandbOptions):
    """The options of ``relaax-inference-server``."""

    bind: kinds.AddressOption = bind_at(7005)
    name: kinds.NamedPlaceOption | None = option(
        None,
        "register below this name, at a parameter server or with etcd://HOST:PORT/NAME at an etcd: "
        "those who ask find this server by it; several servers may have one name",
    )
    policy_identifier: kinds.IdentifierOption = option(
        "latest",
        "choose by this version of the parameter database: a number, a tag, or a query as JSON, "
        "which is asked anew at each pull; 'latest' are the newest values",
    )


class LearnerOptions(CheckpointOptions, StoringOptions, FollowingOptions, WandbOptions):
    """The options of ``relaax-learner``."""

    bind: kinds.AddressOption = bind_at(7002)
    checkpoint_dir: kinds.DirectoryOption | None = option(
        None, "directory of the learner's own checkpoints, another one than the parameter server's"
    )
    replay_servers: kinds.AddressesOption | None = option(
        None, "addresses of the replay servers; without them the learner itself stores the steps"
    )
    publish_interval: kinds.PauseOption = option(
        0.3, "publish the parameters no more often than this"
    )
    publish_every: kinds.CountOption | None = option(
        None, "publish the parameters after so many steps of the learner, and not by the clock"
    )
    prefetch: kinds.CountOption = option(2, "how many batches are prepared ahead of the learner")
    prefetch_threads: kinds.CountOption = option(
        1, "how many batches are drawn at a time: more than one where replay servers are far away"
    )
    nice: kinds.NiceOption = option(
        10,
        "niceness of the learner's process, 0 to 19: processes that answer environments on the "
        "same machine come first",
    )
    start_afresh: kinds.SwitchOption = option(
        False,
        "let this learner's policies replace the published ones, also where they do not continue "
        "these; by default they are refused then",
    )
    save_replay: kinds.SwitchOption | None = option(
        None,
        "save the stored steps, too, whenever a checkpoint is saved; by default they are, where "
        "all of a full replay fit on the disk of --checkpoint-dir and, as copies, in the memory; "
        "steps of replay servers have places of their own",
    )
    population_member: kinds.SwitchOption = option(
        False,
        "go on with the parameters of another learner's checkpoint, and with other keys of the "
        "algorithm's section, whenever the manager of a population says so at the parameter server",
    )

    def require_agreement(self) -> None:
        """See Options: options of steps that replay servers hold, or that are not saved."""
        if self.population_member and self.checkpoint_dir is None:
            raise ConfigurationError(
                "--population-member needs --checkpoint-dir: other members take the parameters "
                "from there"
            )
        if self.publish_every is not None:
            self.require_none_of(
                ("publish_interval",),
                "with --publish-every the learner publishes by its steps, and not by the clock",
            )
        if self.replay_servers is None:
            super().require_agreement()
            if self.save_replay and self.checkpoint_dir is None and self.checkpoint_aws_s3 is None:
                raise ConfigurationError(
                    "--save-replay needs --checkpoint-dir or --checkpoint-aws-s3"
                )
            return
        if self.save_replay:
            raise ConfigurationError(
                "--save-replay: replay servers hold the steps: give these --checkpoint-dir or "
                "--checkpoint-aws-s3"
            )
        self.require_none_of(
            ("evict_after", "evict_interval", "lease"),
            "replay servers hold the steps: give it to these",
        )


class ActorOptions(DeliveringOptions, ServerOptions, WandbOptions):
    """The options of ``relaax-actor``."""

    http_bind: kinds.AddressOption | None = option(
        None,
        "answer HTTP at this address, as servers do: the first actor here, each further one at the "
        "next port; by default there are no such ports",
    )

    env: kinds.EnvironmentOption | None = option(
        None,
        "the environment: its name in Gymnasium, MODULE:NAME to import a module before, or "
        "FILE.py:CLASS for a class of your own",
    )
    env_kwargs: kinds.JsonOption = option(
        {}, "further arguments for the environment, as a JSON object"
    )
    seed: kinds.WholeOption | None = option(
        None, "seed of the first actor and its environment; the next one gets N + 1"
    )
    actors: kinds.CountOption = option(1, "how many actors there are, each a process with its own")
    agents: kinds.FileOption | None = option(
        None,
        "a file with groups of agents, each of which has a policy and a way of its steps; an "
        "experiment writes it",
    )
    moved: kinds.MovedOption = option(
        {},
        "with --agents: servers listen at the second address that the files of the groups have at "
        "the first; a launcher says so on a cluster",
    )
    mode: kinds.ActorModeOption = option(
        "training",
        "the purpose of acting: 'training', or 'eval_deterministic' and 'eval_stochastic', from "
        "which nothing is learnt",
    )
    deterministic: kinds.SwitchOption = option(
        False, "with --mode training: actions are the policy's most probable ones, and no samples"
    )
    episodes: kinds.CountOption | None = option(None, "stop after so many episodes of each actor")
    fetch_parameter_mode: kinds.FetchModeOption = option(
        "step", "whether actors fetch the parameters by steps, by episodes or by seconds"
    )
    fetch_parameter_interval: kinds.IntervalOption = option(
        10.0,
        "fetch the parameters before each so many-th step, or episode, or after so many seconds",
    )
    policy_identifier: kinds.IdentifierOption = option(
        "latest",
        "fetch this version of the parameter database: a number, a tag, or a query as JSON, which "
        "is asked anew at each fetch; 'latest' are the newest values",
    )
    eval_stream: kinds.NameOption | None = option(
        None,
        "report episodes, from which nothing is learnt, to the managers of this stream of an "
        "experiment, or of several, with commas between their names",
    )
    curriculum_server: kinds.AddressOption | None = option(
        None,
        "reset environments with the present stage of the curriculum of this parameter server's "
        "policy",
    )
    limit_episode_length: kinds.CountOption | None = option(
        None, "cut an episode off after so many steps"
    )
    environment_timeout: kinds.PauseOption = option(
        600.0,
        "make an environment again that takes longer for a step or a start of an episode (0: wait "
        "for ever)",
    )
    record_video: kinds.DirectoryOption | None = option(
        None, "record episodes of the first actor as MP4 files here (needs relaax[video])"
    )
    record_every: kinds.CountOption = option(
        10, "record every so many-th episode, beginning with the first"
    )
    max_videos: kinds.CountOption = option(10, "keep so many of the newest files")

    @property
    def fetches_for_each_evaluation(self) -> bool:
        """Whether parameters are fetched before each episode: in evaluations, without a rule."""
        return self.mode != "training" and "fetch_parameter_mode" not in self.model_fields_set

    def require_agreement(self) -> None:
        """See Options: an actor needs its environment."""
        if self.env is None:
            raise ConfigurationError("--env: is missing: which environment is acted in?")
        if self.deterministic and self.mode != "training":
            raise ConfigurationError("--deterministic: no effect with --mode eval_...")
        if self.eval_stream is not None and self.mode == "training":
            raise ConfigurationError("--eval-stream: no effect without --mode eval_...")
        interval = self.fetch_parameter_interval
        if self.fetch_parameter_mode != "second" and not interval.is_integer():
            raise ConfigurationError(
                "--fetch-parameter-interval: must be a whole number of "
                f"{self.fetch_parameter_mode}s, is {interval:g}"
            )
        if self.agents is None and self.moved:
            raise ConfigurationError("--moved: has no effect without --agents")
        if self.agents is not None:
            self.require_none_of(
                (
                    "mode",
                    "deterministic",
                    "fetch_parameter_mode",
                    "fetch_parameter_interval",
                    "policy_identifier",
                    "eval_stream",
                    "inference_servers",
                    "learner",
                    "replay_servers",
                    "when_full",
                    "limit_episode_length",
                ),
                "with --agents each group has its own in the file",
            )
            self.require_none_of(
                ("record_video", "record_every", "max_videos"),
                "with --agents no videos are recorded",
            )
        if self.inference_servers is not None:
            self.require_none_of(
                ("fetch_parameter_mode", "fetch_parameter_interval", "policy_identifier"),
                "with --inference-servers an actor fetches no parameters",
            )


class ExportOptions(ReadingOptions, LogOptions):
    """The options of ``relaax-export``."""

    which: ClassVar[str] = "--checkpoint"

    checkpoint: kinds.CheckpointOption = option("latest", "which checkpoint is written")
    onnx: kinds.FileOption | None = option(
        None, "write the policy as an ONNX file here (needs relaax[export])"
    )
    saved_model: kinds.DirectoryOption | None = option(
        None, "write the policy as a TensorFlow SavedModel into this directory"
    )
    float_images: kinds.SwitchOption = option(
        False, "images are float32 as environments send them, and not bytes"
    )

    def require_agreement(self) -> None:
        """See Options: there is a file to write."""
        if self.onnx is None and self.saved_model is None:
            raise ConfigurationError(
                "no file to write is named: give --onnx FILE or --saved-model DIR"
            )
