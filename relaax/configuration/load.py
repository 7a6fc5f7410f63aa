"""Loads the configuration of a command: its options, and the algorithm's section."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeAlias

from relaax.configuration.command_line import build_parser
from relaax.configuration.commands import (
    ACTOR,
    COMMANDS,
    EXPORT,
    LEARNER,
    PARAMETER_SERVER,
    REPLAY_SERVER,
    RLX_SERVER,
    Command,
)
from relaax.configuration.merging import (
    ALGORITHM,
    ALTERNATIVES,
    Layer,
    Options,
    listed,
    listed_settings,
    merge,
    with_settings,
)
from relaax.configuration.mistakes import as_written
from relaax.configuration.named_files import (
    ACCESS,
    locate_algorithm,
    place_of_access,
    with_access_file,
    with_file_beside,
)
from relaax.configuration.option_base import AccessOptions
from relaax.configuration.option_kinds import folder_of_checkpoint
from relaax.configuration.options import (
    REPLACED,
    ActorOptions,
    ExportOptions,
    LearnerOptions,
    ParameterServerOptions,
    ReplayServerOptions,
    RlxServerOptions,
)
from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError, did_you_mean

_SECTIONS = (*(command.name for command in COMMANDS), ACCESS, ALGORITHM)

#: The keys of the section ``access``.
_OF_ACCESS = [
    *(str(field.alias) for field in AccessOptions.model_fields.values()),
    "--environments-without-certificate",
]

#: Options that one section has for commands without one in their own section: the command of that
#: section, and the option there.
_FROM_OTHERS = {
    "--replay-servers": (LEARNER.name, "--replay-servers"),
    "--parameter-server": (PARAMETER_SERVER.name, "--shards"),
}

#: Options of the parameter server's section, for those that read the checkpoints that it writes.
_PLACE_OF_CHECKPOINTS = (*ALTERNATIVES, "--aws-keys", "--aws-endpoint-url")

#: Options that say which checkpoint is read; a path says where it is, too.
_EXPLOIT, _CHECKPOINT = "--exploit", "--checkpoint"


@dataclass(frozen=True)
class AlgorithmSection:
    """The algorithm's folder and parameters."""

    directory: Path
    #: The YAML's ``algorithm:`` section without ``path`` and ``name``.
    parameters: Mapping[str, Any]
    #: The YAML file, for messages.
    source: Path
    #: The keys that ``--set`` has given, with dots between those that lie in each other.
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Configuration(Generic[Options]):
    """The whole configuration of a command."""

    options: Options
    algorithm: AlgorithmSection
    #: By key of an option: where its value stands.
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    #: The YAML's section of the RLX server as it is written, for the record.
    rlx_server: Any = field(default=None, compare=False)

    @property
    def run_name(self) -> str:
        """The name of the run in TensorBoard: ``--run-name``, or the name of the YAML file."""
        return getattr(self.options, "run_name", None) or self.algorithm.source.stem


ParameterServerConfiguration: TypeAlias = Configuration[ParameterServerOptions]
RlxServerConfiguration: TypeAlias = Configuration[RlxServerOptions]
LearnerConfiguration: TypeAlias = Configuration[LearnerOptions]
ReplayServerConfiguration: TypeAlias = Configuration[ReplayServerOptions]
ActorConfiguration: TypeAlias = Configuration[ActorOptions]
ExportConfiguration: TypeAlias = Configuration[ExportOptions]


def load(command: Command[Options], arguments: Sequence[str]) -> Configuration[Options]:
    """Return the configuration of a command; ConfigurationError for a mistake in it."""
    flags = _flags(command, arguments)
    path: Path = flags.pop("config")
    settings: list[str] = flags.pop("set", [])
    is_listed: bool = flags.pop("list_options", False)
    written = read_yaml(path)
    content = with_access_file(written, path)
    if "--log-level" not in flags:
        _follow_log_level(content.get(command.name))
    _refuse_unknown(content, _SECTIONS, f"{path}: ")
    layers = _layers(command, flags, content, path, place_of_access(written, path))
    options, sources = merge(command.options, layers)
    command.require(options)
    algorithm = _algorithm(_section(content, ALGORITHM, path), path, settings)
    if is_listed:
        place = f"{path}: {ALGORITHM}"
        parameters = listed_settings(algorithm.parameters, algorithm.settings, place)
        print(*listed(options, sources), *parameters, sep="\n")
        raise SystemExit(0)
    return Configuration(options, algorithm, sources, content.get(RLX_SERVER.name))


load_parameter_server = partial(load, PARAMETER_SERVER)
load_rlx_server = partial(load, RLX_SERVER)
load_learner = partial(load, LEARNER)
load_replay_server = partial(load, REPLAY_SERVER)
load_actor = partial(load, ACTOR)
load_export = partial(load, EXPORT)


def _flags(command: Command[Any], arguments: Sequence[str]) -> dict[str, Any]:
    if command.takes_file_first and arguments and not arguments[0].startswith("-"):
        arguments = ["--config", *arguments]
    parser = build_parser(command)
    known, others = parser.parse_known_args(arguments)
    _follow_log_level(vars(known))
    for flag in (other.partition("=")[0] for other in others):
        if flag in REPLACED:
            raise ConfigurationError(f"{flag}: no such option any more; {REPLACED[flag]}")
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    return vars(known)


def _layers(
    command: Command[Any], flags: dict[str, Any], content: dict[str, Any], path: Path, access: str
) -> list[Layer]:
    """Return the values that all sources have for a command's options, the strongest first."""
    known = [str(field.alias) for field in command.options.model_fields.values()]
    own = _section(content, command.name, path)
    _refuse_unknown(own, known, f"{path}: {command.name}: ")
    of_access = _section(content, ACCESS, path)
    _refuse_unknown(of_access, _OF_ACCESS, f"{access}: ")
    of_access = {key: value for key, value in of_access.items() if key in known}
    flags = _with_folder(flags, "")
    own = _with_folder(own, f"{path}: {command.name}: ")
    layers = [Layer(flags), Layer(own, f"{path}: {command.name}")]
    for key, (section, name) in _FROM_OTHERS.items():
        theirs = _section(content, section, path)
        if key in known and name in theirs and section != command.name:
            layers.append(Layer({key: theirs[name]}, f"{path}: {section}"))
    if command.name == EXPORT.name or (_EXPLOIT in known and {_EXPLOIT} & {*flags, *own}):
        theirs = _section(content, PARAMETER_SERVER.name, path)
        place = {key: theirs[key] for key in _PLACE_OF_CHECKPOINTS if key in theirs}
        layers.append(Layer(place, f"{path}: {PARAMETER_SERVER.name}"))
    return [*layers, Layer(of_access, access)]


def _with_folder(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return options with the folder of a checkpoint's file, if a path is given, as its place.

    ConfigurationError where these options name another place, too.
    """
    for key in (_EXPLOIT, _CHECKPOINT):
        folder = folder_of_checkpoint(values.get(key))
        if folder is None:
            continue
        for other in ALTERNATIVES:
            if other in values:
                raise ConfigurationError(
                    f"{where}{key} {values[key]} is in the folder {folder}, and {other} names "
                    "a place, too: give one of them"
                )
        return {**values, ALTERNATIVES[0]: folder}
    return values


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


def _refuse_unknown(content: Mapping[Any, Any], known: Collection[str], where: str) -> None:
    for key in content:
        if key in REPLACED:
            raise ConfigurationError(f"{where}{key}: no such key any more; {REPLACED[key]}")
        if key not in known:
            shown = key if isinstance(key, str) else as_written(key)
            raise ConfigurationError(f"{where}{shown}: no such key; {did_you_mean(key, known)}")


def _algorithm(section: dict[Any, Any], path: Path, settings: Sequence[str]) -> AlgorithmSection:
    for key in section:
        if not isinstance(key, str):
            raise ConfigurationError(
                f"{path}: {ALGORITHM}: a key must be text, is {as_written(key)}"
            )
    section, keys = with_settings(section, settings)
    parameters = {key: value for key, value in section.items() if key not in ("path", "name")}
    return AlgorithmSection(
        directory=locate_algorithm(section, path),
        parameters=with_file_beside(path, parameters),
        source=path,
        settings=keys,
    )
