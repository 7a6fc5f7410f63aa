"""The options that several commands share, in classes that a command puts together."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from relaax.address import Address, Addresses
from relaax.configuration import option_kinds as kinds
from relaax.errors import ConfigurationError

#: The section of the YAML file with options of all commands.
ACCESS = "access"

#: Its keys that name files; they may be in a command's own section, too.
FILES = ("--auth-token-file", "--tls-cert", "--tls-key", "--tls-ca")

IN_ACCESS, IN_LEARNER = kinds.AlsoIn(ACCESS), kinds.AlsoIn("relaax-learner")


def option(default: Any, description: str) -> Any:
    """Return a field with a default, and a description for ``--help``."""
    return Field(default, description=description)


def bind_at(port: int) -> Any:
    """Return the field ``bind`` of a server, whose default is this port of this machine."""
    return option(Address("localhost", port), "address to serve")


class Options(BaseModel):
    """A field is a YAML key and a command-line flag at once."""

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

    def require_agreement(self) -> None:
        """Raise ConfigurationError for options that do not fit each other, in any sources."""

    def require_none_of(self, names: Sequence[str], reason: str) -> None:
        """Raise ConfigurationError if any of these options is given, which would have no effect."""
        for name in names:
            if name in self.model_fields_set:
                raise ConfigurationError(f"--{name.replace('_', '-')}: {reason}")


class AccessOptions(Options):
    """Tokens, certificates and proxy, also keys of the section ``access`` of the YAML file."""

    auth_token_file: Annotated[kinds.FileOption | None, IN_ACCESS] = option(
        None,
        "file of tokens, each line ROLE TOKEN with a role of server, environment or monitor: this "
        "process shows the token of server (of several the second, since others may not know the "
        "newest yet), and asks callers for one with their right; it is read again when it changes",
    )
    tls_cert: Annotated[kinds.FileOption | None, IN_ACCESS] = option(
        None, "certificate that is shown to others, a PEM file; with --tls-key"
    )
    tls_key: Annotated[kinds.FileOption | None, IN_ACCESS] = option(None, "its key, a PEM file")
    tls_ca: Annotated[kinds.FileOption | None, IN_ACCESS] = option(
        None,
        "certificates of the authorities that sign certificates of others, a PEM file: servers ask "
        "callers for a certificate; by default the system's authorities count, and callers need no "
        "certificate",
    )
    insecure: Annotated[kinds.SwitchOption, IN_ACCESS] = option(
        False,
        "listen at addresses that other machines reach without TLS or without tokens, and send "
        "tokens without TLS",
    )
    proxy: Annotated[kinds.ProxyOption | None, IN_ACCESS] = option(
        None,
        "HTTP proxy with CONNECT through which other servers of the training are called; by "
        "default they are called directly, whatever http_proxy and variables like it say",
    )


class LogOptions(Options):
    """The log of a command."""

    log_level: kinds.LevelOption = option(
        "WARNING", "the least level that is logged: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: kinds.FileOption | None = option(
        None,
        "write the log into this file, too, with the name of the process in each line; all servers "
        "may write into the same one",
    )


class ServerOptions(LogOptions, AccessOptions):
    """The log, guards and operators' port of a server."""

    http_bind: kinds.AddressOption | None = option(
        None,
        "answer HTTP at this address: /healthz and /readyz say how the server is, /metrics has "
        "figures for Prometheus; by default there is no such port",
    )


class WandbOptions(Options):
    """Runs at Weights & Biases of the workers of a process."""

    wandb_runs: kinds.FileOption | None = option(
        None,
        "a file with runs of Weights & Biases that have the metrics of this process, too; an "
        "experiment writes it (needs relaax[wandb])",
    )


class PlaceOptions(Options):
    """A place of checkpoints, and how S3 is reached."""

    checkpoint_dir: kinds.DirectoryOption | None = option(None, "directory of checkpoints")
    checkpoint_aws_s3: kinds.S3Option | None = option(None, "AWS S3 bucket and key of checkpoints")
    aws_keys: kinds.FileOption | None = option(
        None,
        "YAML file with the keys 'access' and 'secret' for AWS S3; without it boto3 looks where "
        "it always does: environment, ~/.aws, the machine's role",
    )
    aws_endpoint_url: kinds.UrlOption | None = option(
        None,
        "URL of an S3 store that is not Amazon's, such as MinIO or Ceph; by default the "
        "environment variable AWS_ENDPOINT_URL_S3, if it is set",
    )

    @property
    def aws(self) -> kinds.AwsAccess:
        """Keys and endpoint."""
        return kinds.AwsAccess(self.aws_keys, self.aws_endpoint_url)


class ReadingOptions(PlaceOptions):
    """The place of a checkpoint that is read: by default the parameter server's, if one is read."""

    #: The key of the option that says which checkpoint; a path there says where it is, too.
    which: ClassVar[str]

    checkpoint_dir: kinds.DirectoryOption | None = option(
        None,
        "directory of the checkpoints that are exported, or served with --exploit; by default that "
        "of the parameter server's section in the YAML file",
    )


class SavingOptions(PlaceOptions):
    """A place of checkpoints, and how often they are saved."""

    checkpoint_interval: kinds.SecondsOption = option(900.0, "seconds between checkpoints")


class CheckpointOptions(SavingOptions):
    """Where checkpoints are saved, how often and how many, and with which one to begin."""

    checkpoints_to_keep: kinds.CountOption = option(
        5, "how many of the latest checkpoints are kept"
    )
    keep_best: kinds.WholeOption = option(
        1,
        "how many of the best checkpoints are kept, too: by the scores of evaluations, or else by "
        "the mean return of the training when they were saved",
    )
    restore: kinds.RestoreOption = option(
        "latest", "which checkpoint to begin with: the latest, the N-th before it, the best, a step"
    )
    list_checkpoints: kinds.SwitchOption = option(
        False,
        "print a table of the checkpoints that there are, and exit; nothing is changed, and a "
        "training may go on meanwhile",
    )


class TrainingOptions(Options):
    """The address of the parameter server."""

    parameter_server: Annotated[
        kinds.ParameterServerOption, kinds.AlsoIn("relaax-parameter-server", "--shards")
    ] = option(
        Addresses([Address("localhost", 7000)]),
        "address of the parameter server, or of all its shards, the first one first; by default "
        "the --shards of its section in the YAML file",
    )


class FollowingOptions(ServerOptions, TrainingOptions):
    """A server that ends with the training: it outlives the parameter server for some time."""

    give_up: kinds.SecondsOption = option(
        3600.0,
        "end, with status 1, when the parameter server has not answered for so long, since the "
        "start or since its last answer: it may have ended with the training meanwhile; where "
        "checkpoints are saved, also when S3 does not answer at the start",
    )


class DeliveringOptions(TrainingOptions):
    """Where a worker or an actor delivers steps."""

    learner: kinds.AddressOption = option(
        Address("localhost", 7002), "address of the learner, for algorithms that have one"
    )
    replay_servers: Annotated[kinds.AddressesOption | None, IN_LEARNER] = option(
        None,
        "addresses of the replay servers, to which steps go instead; by default the addresses in "
        "the learner's section of the YAML file",
    )
    inference_servers: kinds.InferenceServersOption | None = option(
        None,
        "addresses of inference servers, which choose all actions: then this process needs neither "
        "parameters nor TensorFlow; by default it chooses by itself. Or names://HOST:PORT/NAME, "
        "with the address of a parameter server, or etcd://HOST:PORT/NAME, for all servers that "
        "have this --name",
    )
    when_full: kinds.WhenFullOption = option(
        "wait",
        "the fate of steps while the replay takes no more, because the learner does not keep up: "
        "'wait' lets environments wait, but for no more than five seconds where it does not answer "
        "at all; 'drop' drops the steps, which are counted",
    )
    spread: kinds.SpreadOption = option(
        "environment",
        "of several replay servers, where steps go: those of an 'environment' to one of them, "
        "episodes in turn ('round-robin'), or all steps to all ('broadcast')",
    )


class StoringOptions(Options):
    """How long stored steps, and their writers, are remembered."""

    lease: kinds.SecondsOption = option(
        60.0, "forget a worker of which nothing was heard for so many seconds"
    )
    evict_after: kinds.SecondsOption | None = option(
        None, "evict steps that are older than so many seconds; if omitted, only to make room"
    )
    evict_interval: kinds.SecondsOption = option(
        10.0, "seconds between two times at which --evict-after is looked at"
    )

    def require_agreement(self) -> None:
        """See Options: an interval of evictions that never happen."""
        if self.evict_after is None:
            self.require_none_of(
                ("evict_interval",), "without --evict-after nothing is evicted by its age"
            )
