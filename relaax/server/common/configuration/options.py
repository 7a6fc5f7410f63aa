"""The options of the servers. A field is a YAML key and a command-line flag at once."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from relaax.address import Address
from relaax.errors import ConfigurationError

#: The protocol's own default. Not imported from there: that imports numpy, which would read the
#: environment before the RLX server has set its number of threads.
MAX_FRAME_BYTES = 64 * 1024 * 1024

#: The help of the option that all servers have.
LOG_FILE = (
    "write the log into this file, too, with the name of the process in each line; all servers may "
    "write into the same one"
)

#: The latest checkpoint, the N-th before it, the best one, or the one of a step.
RESTORABLE = re.compile(r"(latest|best)|latest-([1-9][0-9]*)|(0|[1-9][0-9]*)")

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
Workers = Literal["connection", "auto"] | PositiveInt
ActorModeName = Literal["training", "eval_deterministic", "eval_stochastic"]
FetchModeName = Literal["step", "episode"]


class S3Location(NamedTuple):
    """A place in AWS S3."""

    bucket: str
    #: Prefix of the names of all objects.
    key: str


@dataclass(frozen=True)
class Flag:
    """How a field looks on the command line."""

    metavar: str | tuple[str, ...]
    #: Whether it takes several values.
    takes_several: bool = False


def _address(value: Any) -> Any:
    if isinstance(value, Address):
        return value
    if not isinstance(value, str):
        raise ValueError("must be HOST:PORT")
    try:
        return Address.parse(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


def _addresses(value: Any) -> Any:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError("must be a list of HOST:PORT")
    addresses = tuple(_address(each) for each in value)
    if len(set(addresses)) < len(addresses):
        raise ValueError("must not name an address twice")
    return addresses


def _s3_location(value: Any) -> Any:
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    if not is_pair or not all(isinstance(part, str) and part for part in value):
        raise ValueError("must be a bucket and a key, such as [my_bucket, training]")
    return S3Location(*value)


def _path(value: Any) -> Any:
    if not isinstance(value, (str, Path)) or not str(value):
        raise ValueError("must be a path")
    return Path(os.path.expanduser(value))  # leaves an unknown ~user alone, where Path raises


def _name(value: Any) -> Any:
    if not isinstance(value, str) or value in ("", "..") or Path(value).name != value:
        raise ValueError("must be a name for a directory, without '/'")
    return value


def _text(value: Any) -> Any:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a name")
    return value


def _mapping(value: Any) -> Any:
    """Take JSON, as the command line has it, for what it says."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"must be a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("must be a mapping of arguments to values")
    return found


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _count(value: Any) -> Any:
    """Take 1e3 for 1000: that the reader makes a float of it is no concern of the user's."""
    number = _no_bool(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _workers(value: Any) -> Any:
    """Take the text of a number, as the command line has it, for the number."""
    if value in ("connection", "auto"):
        return value
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"must be 'connection', 'auto' or a number of workers, is {value!r}")
    return number


def _restore(value: Any) -> Any:
    """Take a number for its text, and check it."""
    text = str(_no_bool(_count(value)))
    if not RESTORABLE.fullmatch(text):
        raise ValueError(f"must be latest, latest-N, best or a step, is {value!r}")
    return text


AddressOption = Annotated[Address, BeforeValidator(_address), Flag("HOST:PORT")]
AddressesOption = Annotated[
    tuple[Address, ...], BeforeValidator(_addresses), Flag("HOST:PORT", takes_several=True)
]
S3Option = Annotated[S3Location, BeforeValidator(_s3_location), Flag(("BUCKET", "KEY"))]
DirectoryOption = Annotated[Path, BeforeValidator(_path), Flag("DIR")]
FileOption = Annotated[Path, BeforeValidator(_path), Flag("FILE")]
LevelOption = Annotated[LogLevel, Flag("LEVEL")]
SecondsOption = Annotated[PositiveFloat, BeforeValidator(_no_bool), Flag("SECONDS")]
CountOption = Annotated[PositiveInt, BeforeValidator(_count), Flag("N")]
WholeOption = Annotated[NonNegativeInt, BeforeValidator(_count), Flag("N")]
RestoreOption = Annotated[str, BeforeValidator(_restore), Flag("latest|latest-N|best|STEP")]
SwitchOption = Annotated[bool, Flag(())]


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
    run_name: Annotated[str, BeforeValidator(_name), Flag("NAME")] | None = _option(
        None,
        "name of the run in TensorBoard, a directory below --metrics-dir; by default that of the "
        "YAML file",
    )
    metrics_aws_s3: S3Option | None = _option(
        None, "AWS S3 bucket and key that the files of --metrics-dir are copied to"
    )
    wandb_project: Annotated[str, BeforeValidator(_name), Flag("NAME")] | None = _option(
        None,
        "hand the metrics to this project of Weights & Biases, too; nothing is sent with the "
        "environment variable WANDB_MODE=offline",
    )
    aws_keys: FileOption | None = _option(
        None,
        "YAML file with the keys 'access' and 'secret' for AWS S3; without it boto3 looks where "
        "it always does: environment, ~/.aws, the machine's role",
    )
    goal_return: Annotated[float, BeforeValidator(_no_bool), Flag("RETURN")] | None = _option(
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


#: What the description of an option ends with that the learner's section may give.
FROM_LEARNER = "; by default those of the learner's section in the YAML file"


class ReplayServerOptions(_Options):
    """The options of ``relaax-replay-server``."""

    bind: AddressOption = _option(
        Address("localhost", 7003), "address at which workers deliver and the learner draws"
    )
    parameter_server: AddressOption = _option(
        Address("localhost", 7000), "address of the parameter server"
    )
    log_level: LevelOption = _option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = _option(None, LOG_FILE)
    replay_servers: AddressesOption | None = _option(
        None,
        f"addresses of all replay servers, this one included: it stores its share{FROM_LEARNER}",
    )
    name: Annotated[str, BeforeValidator(_name), Flag("NAME")] | None = _option(
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
    evict_after: SecondsOption | None = _option(
        None, "evict steps that are older than so many seconds; if omitted, only where room is made"
    )
    evict_interval: SecondsOption = _option(
        10.0, "seconds between two times at which --evict-after is looked at"
    )

    @property
    def own_name(self) -> str:
        """``name``, the default filled in."""
        return self.name or f"{self.bind.host}-{self.bind.port}"


class LearnerOptions(_Options):
    """The options of ``relaax-learner``."""

    bind: AddressOption = _option(
        Address("localhost", 7002), "address at which workers deliver experience"
    )
    parameter_server: AddressOption = _option(
        Address("localhost", 7000), "address of the parameter server"
    )
    log_level: LevelOption = _option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = _option(None, LOG_FILE)
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
    publish_interval: Annotated[NonNegativeFloat, BeforeValidator(_no_bool), Flag("SECONDS")] = (
        _option(0.3, "publish the parameters no more often than this")
    )
    publish_every: CountOption | None = _option(
        None, "publish the parameters after so many steps of the learner, and not by the clock"
    )
    replay_servers: AddressesOption | None = _option(
        None, "addresses of the replay servers; without them the learner itself stores the steps"
    )
    prefetch: CountOption = _option(2, "how many batches are prepared ahead of the learner")
    lease: SecondsOption = _option(
        60.0, "forget a worker that has delivered nothing for so many seconds"
    )


class ActorOptions(_Options):
    """The options of ``relaax-actor``."""

    parameter_server: AddressOption = _option(
        Address("localhost", 7000), "address of the parameter server"
    )
    learner: AddressOption = _option(
        Address("localhost", 7002), "address at which the learner takes experience"
    )
    replay_servers: AddressesOption | None = _option(
        None, f"addresses of the replay servers, to which steps go instead{FROM_LEARNER}"
    )
    log_level: LevelOption = _option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    env: Annotated[str, BeforeValidator(_text), Flag("ENV")] | None = _option(
        None,
        "the environment: its name in Gymnasium, MODULE:NAME to import a module before, or "
        "FILE.py:CLASS for a class of your own",
    )
    env_kwargs: Annotated[dict[str, Any], BeforeValidator(_mapping), Flag("JSON")] = _option(
        {}, "further arguments for the environment, as a JSON object"
    )
    actors: CountOption = _option(1, "how many actors there are, each a process with its own")
    mode: Annotated[ActorModeName, Flag("MODE")] = _option(
        "training",
        "what the actors act for: 'training', or 'eval_deterministic' and 'eval_stochastic', from "
        "which nothing is learnt",
    )
    episodes: CountOption | None = _option(None, "stop after so many episodes of each actor")
    fetch_parameter_mode: Annotated[FetchModeName, Flag("step|episode")] = _option(
        "step", "whether actors fetch the parameters by steps or by episodes"
    )
    fetch_parameter_interval: CountOption = _option(
        10, "fetch the parameters before each so many-th step, or episode"
    )
    limit_episode_length: CountOption | None = _option(
        None, "cut an episode off after so many steps"
    )
    seed: Annotated[NonNegativeInt, BeforeValidator(_count), Flag("N")] | None = _option(
        None, "seed of the first actor and its environment; the next one gets N + 1"
    )


#: What to write in the place of options that there were.
REPLACED = {
    "--inference": "write '--workers: auto' for what was 'batched'; leave it out, or write "
    "'--workers: connection', for what was 'inline'",
}


class RlxServerOptions(_Options):
    """The options of ``relaax-rlx-server``."""

    bind: AddressOption = _option(Address("localhost", 7001), "address to serve")
    parameter_server: AddressOption = _option(
        Address("localhost", 7000), "address of the parameter server"
    )
    log_level: LevelOption = _option(
        "WARNING", "what to log: DEBUG, INFO, WARNING, ERROR or CRITICAL"
    )
    log_file: FileOption | None = _option(None, LOG_FILE)
    workers: Annotated[Workers, BeforeValidator(_workers), Flag("connection|auto|N")] = _option(
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
    timeout: SecondsOption | None = _option(
        None,
        "close a connection at the first end of an episode after this many seconds, so that a "
        "load balancer can send the client elsewhere; no need to use it on a local run",
    )
    worker_memory: Annotated[PositiveFloat, BeforeValidator(_no_bool), Flag("MIB")] | None = (
        _option(
            None,
            "free memory that the first connection needs, 128 with a worker of its own and 1 in a "
            "shared one unless given; later ones need the mean of those that are served",
        )
    )
    message_timeout: SecondsOption = _option(
        30.0, "close a connection when a message takes longer than this, in either direction"
    )

    def first_connection_mib(self) -> float:
        """Return ``worker_memory``, the default filled in."""
        if self.worker_memory is not None:
            return self.worker_memory
        return 128.0 if self.workers == "connection" else 1.0

    seed: WholeOption | None = _option(
        None,
        "where the random numbers of this server's workers begin, another number for each RLX "
        "server; by default it is made of the host name and the port",
    )
    max_frame_bytes: Annotated[PositiveInt, BeforeValidator(_count), Flag("BYTES")] = _option(
        MAX_FRAME_BYTES, "close a connection whose message is larger"
    )
    max_environments: CountOption = _option(
        1024, "how many environments one connection may carry, at most"
    )
