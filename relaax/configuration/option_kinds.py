"""Kinds of options: the check of a value, and its look on the command line."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from pydantic.fields import FieldInfo

from relaax.address import Address, Addresses
from relaax.configuration.eval_rules import EvalRule
from relaax.errors import ConfigurationError
from relaax.names.paths import NamedPlace
from relaax.processes.identifiers import identifier_of, text_of
from relaax.processes.shard import Shard

#: The latest checkpoint, the N-th before it, the best one, or the one of a step.
RESTORABLE = re.compile(r"(latest|best)|latest-([1-9][0-9]*)|(0|[1-9][0-9]*)")

#: The name of a checkpoint's file, which has its step.
_CHECKPOINT_FILE = re.compile(r"cp-([0-9]+)(\.json|\.[0-9a-f]{12}\.safetensors)?")

#: No policy has so many updates.
_NO_VERSION = 10**11

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
Workers = Literal["connection", "auto"] | PositiveInt
ActorModeName = Literal["training", "eval_deterministic", "eval_stochastic"]
FetchModeName = Literal["step", "episode", "second"]
DatabaseTypeName = Literal["filesystem", "metadata"]
WhenFullName = Literal["wait", "drop"]
SpreadName = Literal["environment", "round-robin", "broadcast"]


class S3Location(NamedTuple):
    """A place in AWS S3."""

    bucket: str
    #: Prefix of the names of all objects.
    key: str


class AwsAccess(NamedTuple):
    """How S3 is reached."""

    #: A YAML file; None for boto3's usual places.
    keys: Path | None = None
    #: Of a store that is not Amazon's.
    endpoint_url: str | None = None


@dataclass(frozen=True)
class Flag:
    """How a field looks on the command line."""

    metavar: str | tuple[str, ...]
    #: Whether it takes several values.
    takes_several: bool = False
    #: The value of a flag that is given without one; None where it needs one.
    alone: str | None = None


@dataclass(frozen=True)
class AlsoIn:
    """Another section of the YAML file that may have a field's value, for several commands."""

    section: str
    #: Its key there; as the field's own if empty.
    key: str = ""


def marks_of(field: FieldInfo) -> list[Any]:
    """Return all that a field is annotated with; of an optional one that is in its union."""
    inner = getattr(field.annotation, "__args__", ())
    return [
        *field.metadata,
        *(mark for part in inner for mark in getattr(part, "__metadata__", ())),
    ]


def _address(value: Any) -> Any:
    if isinstance(value, Address):
        return value
    if not isinstance(value, str):
        raise ValueError("must be HOST:PORT")
    try:
        return Address.parse(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


def _proxy(value: Any) -> Any:
    """Take http://HOST:PORT, or HOST:PORT, for the address."""
    if not isinstance(value, str):
        return _address(value)
    try:
        return Address.parse(value.removeprefix("http://").removesuffix("/"))
    except ConfigurationError:
        raise ValueError(
            f"must be http://HOST:PORT, such as http://proxy.example.com:3128, is {value!r}"
        ) from None


def _addresses(value: Any) -> Any:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError("must be a list of HOST:PORT")
    addresses = tuple(_address(each) for each in value)
    if len(set(addresses)) < len(addresses):
        raise ValueError("must not name an address twice")
    return addresses


def _inference_servers(value: Any) -> Any:
    """Take one name at a registry in the place of addresses."""
    words = value if isinstance(value, (list, tuple)) else [value]
    if len(words) == 1 and "://" in str(words[0]):
        return (_named_place(words[0]),)
    return _addresses(value)


def _named_place(value: Any) -> Any:
    try:
        return value if isinstance(value, NamedPlace) else NamedPlace.parse(str(value))
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


def _moved(value: Any) -> Any:
    """Take OLD=NEW for two addresses."""
    if isinstance(value, dict):
        return value
    pairs = [str(each).partition("=") for each in value]
    return {_address(old): _address(new) for old, _, new in pairs}


def _one_or_more(value: Any) -> Any:
    return Addresses(_addresses([value] if isinstance(value, (str, Address)) else value))


def _shard(value: Any) -> Any:
    if isinstance(value, Shard):
        return value
    if not isinstance(value, str):
        raise ValueError("must be I/N, such as 1/3 for the first of three")
    shard = Shard.parse(value)
    if shard.count == 1:
        raise ValueError("must be one of several: a parameter server without shards needs no 1/1")
    return shard


def _s3_location(value: Any) -> Any:
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    if not is_pair or not all(isinstance(part, str) and part for part in value):
        raise ValueError("must be a bucket and a key, such as [my_bucket, training]")
    return S3Location(*value)


def _url(value: Any) -> Any:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be a URL, such as https://minio.example.com:9000")
    return value


def _mongodb(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("mongodb://", "mongodb+srv://")):
        raise ValueError("must be a URL, such as mongodb://mongo.example.com:27017/relaax")
    return value


def _path(value: Any) -> Any:
    if not isinstance(value, (str, Path)) or not str(value) or not can_be_a_path(str(value)):
        raise ValueError("must be a path")
    return Path(os.path.expanduser(value))  # leaves an unknown ~user alone, where Path raises


def directory_name(value: Any) -> Any:
    """Return a name of a directory; ValueError for one that leads elsewhere."""
    is_name = isinstance(value, str) and value not in ("", "..") and Path(value).name == value
    if not is_name or not can_be_a_path(value):
        raise ValueError("must be a name for a directory, without '/'")
    return value


def can_be_a_path(text: str) -> bool:
    """Return whether a file may be called so: YAML may hold zeros and halves of characters."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _text(value: Any) -> Any:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a name")
    return value


def _mapping(value: Any) -> Any:
    """Read JSON, as the command line has it."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"must be a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("must be a mapping of arguments to values")
    return found


def _count(value: Any) -> Any:
    """Take 1e3 for 1000: that the reader makes a float of it is no concern of the user's."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def identifier_text(value: Any) -> str:
    """Return the text of a version's number, of a tag or of a query; ValueError for others."""
    if isinstance(value, bool) or not isinstance(value, (int, str, dict, list)) or value == "":
        raise ValueError(f"must be a version's number, a tag or a query, is {value!r}")
    if isinstance(value, int) and value >= _NO_VERSION:  # YAML takes 20261129_013100 for a number
        raise ValueError(f"must have quotes around a tag of digits and '_', is {value}")
    text = text_of(value)
    try:
        identifier_of(text)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return text


def _database_name(value: Any) -> Any:
    parts = value.split("/") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or len(parts) != 3 or not all(parts):
        raise ValueError(f"must be EXPERIMENT/TRIAL/POLICY, is {value!r}")
    return tuple(parts)


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
    text = str(_count(value))
    if not RESTORABLE.fullmatch(text):
        raise ValueError(f"must be latest, latest-N, best or a step, is {value!r}")
    return text


def _checkpoint(value: Any) -> Any:
    """Take the name of a checkpoint's file for its step, and check the rest as ``_restore``."""
    found = _CHECKPOINT_FILE.fullmatch(Path(value).name) if isinstance(value, str) else None
    return _restore(found[1] if found else value)


def folder_of_checkpoint(value: object) -> str | None:
    """Return the folder of a checkpoint's file that ``value`` is the path of, if it is one."""
    path = Path(value) if isinstance(value, str) else None
    if path is None or not _CHECKPOINT_FILE.fullmatch(path.name) or len(path.parts) == 1:
        return None
    return str(path.parent)


AddressOption = Annotated[Address, BeforeValidator(_address), Flag("HOST:PORT")]
ProxyOption = Annotated[Address, BeforeValidator(_proxy), Flag("http://HOST:PORT")]
AddressesOption = Annotated[
    tuple[Address, ...], BeforeValidator(_addresses), Flag("HOST:PORT", takes_several=True)
]
MovedOption = Annotated[
    dict[Address, Address], BeforeValidator(_moved), Flag("HOST:PORT=HOST:PORT", takes_several=True)
]
#: Addresses, or one name at a registry.
InferenceServersOption = Annotated[
    tuple[Address, ...] | tuple[NamedPlace],
    BeforeValidator(_inference_servers),
    Flag("HOST:PORT", takes_several=True),
]
NamedPlaceOption = Annotated[
    NamedPlace, BeforeValidator(_named_place), Flag("names://HOST:PORT/NAME")
]
#: One parameter server, or all shards of one.
ParameterServerOption = Annotated[
    Addresses, BeforeValidator(_one_or_more), Flag("HOST:PORT", takes_several=True)
]
ShardOption = Annotated[Shard, BeforeValidator(_shard), Flag("I/N")]
S3Option = Annotated[S3Location, BeforeValidator(_s3_location), Flag(("BUCKET", "KEY"))]
DirectoryOption = Annotated[Path, BeforeValidator(_path), Flag("DIR")]
FileOption = Annotated[Path, BeforeValidator(_path), Flag("FILE")]
LevelOption = Annotated[LogLevel, Flag("LEVEL")]
SecondsOption = Annotated[PositiveFloat, Flag("SECONDS")]
DaysOption = Annotated[PositiveFloat, Flag("DAYS")]
#: A count, or seconds.
IntervalOption = Annotated[PositiveFloat, Flag("N")]
CountOption = Annotated[PositiveInt, BeforeValidator(_count), Flag("N")]
WholeOption = Annotated[NonNegativeInt, BeforeValidator(_count), Flag("N")]
RestoreOption = Annotated[str, BeforeValidator(_restore), Flag("latest|latest-N|best|STEP")]
CheckpointOption = Annotated[str, BeforeValidator(_checkpoint), Flag("latest|latest-N|best|STEP")]
#: The same, which may be given without saying which.
ExploitOption = Annotated[
    str, BeforeValidator(_checkpoint), Flag("latest|latest-N|best|STEP", alone="latest")
]
SwitchOption = Annotated[bool, Flag(())]
NiceOption = Annotated[int, Field(ge=0, le=19), BeforeValidator(_count), Flag("N")]
PauseOption = Annotated[NonNegativeFloat, Flag("SECONDS")]
UrlOption = Annotated[str, BeforeValidator(_url), Flag("URL")]
MongoOption = Annotated[str, BeforeValidator(_mongodb), Flag("URL")]
NameOption = Annotated[str, BeforeValidator(directory_name), Flag("NAME")]
EnvironmentOption = Annotated[str, BeforeValidator(_text), Flag("ENV")]
JsonOption = Annotated[dict[str, Any], BeforeValidator(_mapping), Flag("JSON")]
EvalManagersOption = Annotated[dict[str, EvalRule], BeforeValidator(_mapping), Flag("JSON")]
ReturnOption = Annotated[float, Flag("RETURN")]
ActorModeOption = Annotated[ActorModeName, Flag("MODE")]
FetchModeOption = Annotated[FetchModeName, Flag("step|episode|second")]
DatabaseNameOption = Annotated[
    tuple[str, str, str], BeforeValidator(_database_name), Flag("EXPERIMENT/TRIAL/POLICY")
]
DatabaseTypeOption = Annotated[DatabaseTypeName, Flag("filesystem|metadata")]
IdentifierOption = Annotated[
    str, BeforeValidator(identifier_text), Flag("latest|TAG|VERSION|QUERY")
]
WhenFullOption = Annotated[WhenFullName, Flag("wait|drop")]
SpreadOption = Annotated[SpreadName, Flag("environment|round-robin|broadcast")]
WorkersOption = Annotated[Workers, BeforeValidator(_workers), Flag("connection|auto|N")]
MebibytesOption = Annotated[PositiveFloat, Flag("MIB")]
BytesOption = Annotated[PositiveInt, BeforeValidator(_count), Flag("BYTES")]
