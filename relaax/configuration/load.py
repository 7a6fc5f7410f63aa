"""Combines the command line, the YAML file and the defaults."""

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias

from pydantic import BaseModel, ValidationError

from relaax.configuration.access_file import ACCESS, place_of_access, with_access_file
from relaax.configuration.algorithm_location import locate_algorithm
from relaax.configuration.command_line import build_parser
from relaax.configuration.commands import (
    ACTOR,
    EXPORT,
    LEARNER,
    PARAMETER_SERVER,
    REPLAY_SERVER,
    RLX_SERVER,
    Command,
    Options,
)
from relaax.configuration.mistakes import as_written, explain
from relaax.configuration.option_base import AccessOptions, StoringOptions
from relaax.configuration.option_kinds import folder_of_checkpoint
from relaax.configuration.options import (
    ActorOptions,
    ExportOptions,
    LearnerOptions,
    ParameterServerOptions,
    ReplayServerOptions,
)
from relaax.configuration.rlx_server_options import REPLACED, RlxServerOptions
from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError, did_you_mean

ALGORITHM = "algorithm"

_COMMANDS = (PARAMETER_SERVER, RLX_SERVER, LEARNER, REPLAY_SERVER, ACTOR, EXPORT)

_SECTIONS = (*(command.name for command in _COMMANDS), ACCESS, ALGORITHM)

#: The keys of that section.
_OF_ACCESS = [
    *(str(field.alias) for field in AccessOptions.model_fields.values()),
    "--environments-without-certificate",
]

#: The key of that section that may name a file.
NETWORK = "network"

#: The option that other sections take from the learner's.
REPLAY_SERVERS = "--replay-servers"

#: Stand in the parameter server's section, for those that read the checkpoints which it writes.
_PLACE_OF_CHECKPOINTS = (
    "--checkpoint-dir",
    "--checkpoint-aws-s3",
    "--aws-keys",
    "--aws-endpoint-url",
)

#: The option with which an RLX server reads checkpoints.
EXPLOIT = "--exploit"

#: Options that have an effect with that one alone.
_WITH_EXPLOIT = (
    "stochastic", "checkpoint_dir", "checkpoint_aws_s3", "aws_keys", "aws_endpoint_url"
)  # fmt: skip

#: The option that says which checkpoint is written, and where checkpoints are.
CHECKPOINT, CHECKPOINT_DIR = "--checkpoint", "--checkpoint-dir"

#: A flag for one of these options replaces the other one in the YAML file.
_ALTERNATIVES = (CHECKPOINT_DIR, "--checkpoint-aws-s3")

#: Stands in the parameter server's section, for the option of all that call it.
SHARDS, SHARDS_FOR = "--shards", "--parameter-server"


def require_none_of(options: StoringOptions, names: Sequence[str], reason: str) -> None:
    """Raise ConfigurationError if any of these options is given, which would have no effect."""
    for name in names:
        if name in options.model_fields_set:
            raise ConfigurationError(f"--{name.replace('_', '-')}: {reason}")


def require_interval_of_eviction(options: StoringOptions) -> None:
    """Raise ConfigurationError for an interval of what is not done."""
    if options.evict_after is None:
        require_none_of(
            options, ("evict_interval",), "without --evict-after nothing is evicted by its age"
        )


@dataclass(frozen=True)
class AlgorithmSection:
    """The algorithm's folder and parameters."""

    directory: Path
    #: The YAML's ``algorithm:`` section without ``path`` and ``name``.
    parameters: Mapping[str, Any]
    #: The YAML file, for messages.
    source: Path


@dataclass(frozen=True)
class Configuration(Generic[Options]):
    """The whole configuration of a command."""

    options: Options
    algorithm: AlgorithmSection


@dataclass(frozen=True)
class ParameterServerConfiguration(Configuration[ParameterServerOptions]):
    """The whole configuration of a parameter server."""

    #: The YAML's section of the RLX server as it is written, for the record.
    rlx_server: Any = None

    @property
    def run_name(self) -> str:
        """The name of the run in TensorBoard: ``--run-name``, or that of the YAML file."""
        return self.options.run_name or self.algorithm.source.stem


RlxServerConfiguration: TypeAlias = Configuration[RlxServerOptions]
LearnerConfiguration: TypeAlias = Configuration[LearnerOptions]
ReplayServerConfiguration: TypeAlias = Configuration[ReplayServerOptions]
ActorConfiguration: TypeAlias = Configuration[ActorOptions]
ExportConfiguration: TypeAlias = Configuration[ExportOptions]


def load_parameter_server(arguments: Sequence[str]) -> ParameterServerConfiguration:
    """Return a parameter server's configuration; ConfigurationError for a mistake in it."""
    flags = _flags(PARAMETER_SERVER, arguments)
    options, algorithm, content = _load(flags, PARAMETER_SERVER)
    return ParameterServerConfiguration(options, algorithm, content.get(RLX_SERVER.name))


def load_rlx_server(arguments: Sequence[str]) -> RlxServerConfiguration:
    """Return an RLX server's configuration; ConfigurationError for a mistake in it."""
    parser = build_parser(RLX_SERVER)
    known, others = parser.parse_known_args(arguments)
    flags = vars(known)
    if others:
        _follow_log_level(flags)
        _refuse_replaced(others)
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    options, algorithm, _ = _load(flags, RLX_SERVER)
    _require_exploitation(options)
    return Configuration(options, algorithm)


def load_learner(arguments: Sequence[str]) -> LearnerConfiguration:
    """Return a learner's configuration; ConfigurationError for a mistake in it."""
    options, algorithm, _ = _load(_flags(LEARNER, arguments), LEARNER)
    return Configuration(options, algorithm)


def load_replay_server(arguments: Sequence[str]) -> ReplayServerConfiguration:
    """Return a replay server's configuration; ConfigurationError for a mistake in it."""
    options, algorithm, _ = _load(_flags(REPLAY_SERVER, arguments), REPLAY_SERVER)
    return Configuration(options, algorithm)


def load_actor(arguments: Sequence[str]) -> ActorConfiguration:
    """Return the configuration of actors; ConfigurationError for a mistake in it."""
    options, algorithm, _ = _load(_flags(ACTOR, arguments), ACTOR)
    if options.env is None:
        raise ConfigurationError("--env: is missing: which environment is acted in?")
    return Configuration(options, algorithm)


def load_export(arguments: Sequence[str]) -> ExportConfiguration:
    """Return the configuration of an export; ConfigurationError for a mistake in it."""
    options, algorithm, _ = _load(_flags(EXPORT, arguments), EXPORT)
    if options.onnx is None and options.saved_model is None:
        raise ConfigurationError("what is to be written? Give --onnx FILE or --saved-model DIR")
    return Configuration(options, algorithm)


def _flags(command: Command[Any], arguments: Sequence[str]) -> dict[str, Any]:
    if command.takes_file_first and arguments and not arguments[0].startswith("-"):
        arguments = ["--config", *arguments]
    return vars(build_parser(command).parse_args(arguments))


def _load(
    flags: dict[str, Any], command: Command[Options]
) -> tuple[Options, AlgorithmSection, dict[str, Any]]:
    """Return a command's options, the algorithm, and all that the YAML file holds."""
    section, options = command.name, command.options
    path: Path = flags.pop("config")
    _follow_log_level(flags)
    written = read_yaml(path)
    content = with_access_file(written, path)
    if "--log-level" not in flags:
        _follow_log_level(content.get(section))
    _refuse_unknown(content, _SECTIONS, f"{path}: ")
    from_file = _section(content, section, path)
    known = [str(field.alias) for field in options.model_fields.values()]
    _refuse_unknown(from_file, known, f"{path}: {section}: ")
    place = place_of_access(written, path)
    of_access = _of_access(_section(content, ACCESS, path), known, place)
    _validate(options, of_access, f"{place}: ", strict=True)
    from_file = {**of_access, **from_file}
    if REPLAY_SERVERS in known and REPLAY_SERVERS in _section(content, LEARNER.name, path):
        from_file = {REPLAY_SERVERS: content[LEARNER.name][REPLAY_SERVERS], **from_file}
    if SHARDS_FOR in known and SHARDS in _section(content, PARAMETER_SERVER.name, path):
        from_file = {SHARDS_FOR: content[PARAMETER_SERVER.name][SHARDS], **from_file}
    flags, from_file = _with_folder(flags, ""), _with_folder(from_file, f"{path}: {section}: ")
    exploits = EXPLOIT in known and (EXPLOIT in flags or EXPLOIT in from_file)
    if exploits or command.name == EXPORT.name:
        from_file = _with_place_of_checkpoints(content, from_file, path)
    _validate(options, from_file, f"{path}: {section}: ", strict=True)
    if any(name in flags for name in _ALTERNATIVES):
        from_file = {key: value for key, value in from_file.items() if key not in _ALTERNATIVES}
    _validate(options, flags, "", strict=False)
    return (
        _together(options, {**from_file, **flags}),
        _algorithm(_section(content, ALGORITHM, path), path),
        content,
    )


def _of_access(section: Mapping[str, Any], known: Collection[str], place: str) -> dict[str, Any]:
    """Return what the section of all servers says of options that a command knows."""
    _refuse_unknown(section, _OF_ACCESS, f"{place}: ")
    return {key: value for key, value in section.items() if key in known}


def _with_place_of_checkpoints(
    content: Mapping[str, Any], own: dict[str, Any], path: Path
) -> dict[str, Any]:
    """Return a section's ``own`` keys, with the parameter server's place of checkpoints.

    Each is taken where the section does not say it itself; of two places its own one is meant.
    """
    theirs = _section(content, PARAMETER_SERVER.name, path)
    said = {key: theirs[key] for key in _PLACE_OF_CHECKPOINTS if key in theirs}
    if any(key in own for key in _ALTERNATIVES):
        said = {key: value for key, value in said.items() if key not in _ALTERNATIVES}
    return {**said, **own}


def _with_folder(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return options with the folder of a checkpoint's file, if a path is given, as its place.

    ConfigurationError where these options name another place, too.
    """
    for key in (EXPLOIT, CHECKPOINT):
        folder = folder_of_checkpoint(values.get(key))
        if folder is None:
            continue
        for other in _ALTERNATIVES:
            if other in values:
                raise ConfigurationError(
                    f"{where}{key} {values[key]} is in the folder {folder}, and {other} names "
                    "a place, too: give one of them"
                )
        return {**values, CHECKPOINT_DIR: folder}
    return values


def _require_exploitation(options: RlxServerOptions) -> None:
    """Raise ConfigurationError for options that have an effect with ``--exploit`` alone."""
    if options.exploit is not None:
        return
    for name in _WITH_EXPLOIT:
        if getattr(options, name):
            raise ConfigurationError(
                f"--{name.replace('_', '-')}: has no effect without --exploit; the parameter "
                "server and the learner read and write the checkpoints of a training"
            )


def _follow_log_level(options: Any) -> None:
    """Let errors come with their tracebacks, if ``options`` ask for a log that shows everything.

    They may come before the log is started.
    """
    if isinstance(options, Mapping) and options.get("--log-level") == "DEBUG":
        logging.getLogger().setLevel(logging.DEBUG)


def _section(content: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    section = content.get(name)
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise ConfigurationError(
            f"{path}: {name}: must be a section of keys, is {as_written(section)}"
        )
    return section


def _refuse_replaced(arguments: Sequence[str]) -> None:
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag in REPLACED:
            raise ConfigurationError(f"{flag}: no such option any more; {REPLACED[flag]}")


def _refuse_unknown(content: Mapping[Any, Any], known: Collection[str], where: str) -> None:
    for key in content:
        if key in REPLACED:
            raise ConfigurationError(f"{where}{key}: no such key any more; {REPLACED[key]}")
        if key not in known:
            shown = key if isinstance(key, str) else as_written(key)
            raise ConfigurationError(f"{where}{shown}: no such key; {did_you_mean(key, known)}")


def _validate(
    options: type[BaseModel], values: Mapping[str, Any], where: str, *, strict: bool
) -> None:
    """Check the values of one source, so that an error message names that source.

    YAML values have types, which must fit exactly (``strict``). On the command line all is text.
    """
    try:
        options.model_validate(dict(values), strict=strict)
    except ValidationError as error:
        raise ConfigurationError(where + "; ".join(explain(error))) from error


def _together(options: type[Options], values: Mapping[str, Any]) -> Options:
    """Return the options of both sources, each of which is valid by itself."""
    try:
        return options.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigurationError("; ".join(explain(error))) from error


def _algorithm(section: dict[Any, Any], path: Path) -> AlgorithmSection:
    for key in section:
        if not isinstance(key, str):
            raise ConfigurationError(
                f"{path}: {ALGORITHM}: a key must be text, is {as_written(key)}"
            )
    parameters = {key: value for key, value in section.items() if key not in ("path", "name")}
    return AlgorithmSection(
        directory=locate_algorithm(section, path),
        parameters=with_file_beside(path, parameters),
        source=path,
    )


def with_file_beside(source: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with the full path of a network's file in the YAML file's folder.

    Any other path is left to the working directory.
    """
    written = parameters.get(NETWORK)
    if not isinstance(written, str):
        return dict(parameters)
    beside = source.parent / os.path.expanduser(written)
    if not os.path.isfile(beside):  # false, too, where access is denied or the text is no path
        return dict(parameters)
    return {**parameters, NETWORK: str(beside.resolve())}
