"""Loads the configuration of a command: its options, and the algorithm's section."""

import itertools
import logging
import os
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
    INFERENCE_SERVER,
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
from relaax.configuration.named_files import locate_algorithm, with_file_beside
from relaax.configuration.option_base import ACCESS, FILES, IN_ACCESS, PlaceOptions, ReadingOptions
from relaax.configuration.option_kinds import AlsoIn, can_be_a_path, folder_of_checkpoint, marks_of
from relaax.configuration.options import (
    REPLACED,
    ActorOptions,
    ExportOptions,
    InferenceServerOptions,
    LearnerOptions,
    ParameterServerOptions,
    ReplayServerOptions,
    RlxServerOptions,
)
from relaax.configuration.yaml_reader import read_keys, read_yaml
from relaax.errors import ConfigurationError, no_such_keys

_SECTIONS = (*(command.name for command in COMMANDS), ACCESS, ALGORITHM)

#: The keys of the section ``access``, for whatever command.
_OF_ACCESS = {
    str(field.alias)
    for command in COMMANDS
    for field in command.options.model_fields.values()
    if IN_ACCESS in marks_of(field)
}


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
InferenceServerConfiguration: TypeAlias = Configuration[InferenceServerOptions]
ActorConfiguration: TypeAlias = Configuration[ActorOptions]
ExportConfiguration: TypeAlias = Configuration[ExportOptions]


def load(command: Command[Options], arguments: Sequence[str]) -> Configuration[Options]:
    """Return the configuration of a command; ConfigurationError for a mistake in it."""
    flags = _flags(command, arguments)
    path: Path = flags.pop("config")
    settings: list[str] = flags.pop("set", [])
    is_listed: bool = flags.pop("list_options", False)
    content, place_of_access = _read(path)
    if "--log-level" not in flags:
        _follow_log_level(content.get(command.name))
    _refuse_unknown(content, _SECTIONS, f"{path}: ")
    layers = _layers(command, flags, content, path, place_of_access)
    options, sources = merge(command.options, layers)
    options.require_agreement()
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
load_inference_server = partial(load, INFERENCE_SERVER)
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


def _read(source: Path) -> tuple[dict[str, Any], str]:
    """Return the content of the YAML file, and where the keys of ``access`` stand, for messages.

    The key ``access`` may name a file of its own, relative to the folder of ``source``. Paths of
    tokens and certificates are whole, in all sections: a relative one is in the folder of the file
    that has it, or in the working directory if a file is there and none in that folder.
    ConfigurationError for a file that cannot be read.
    """
    written = read_yaml(source)
    content = {name: _with_files_beside(source, section) for name, section in written.items()}
    if not isinstance(written.get(ACCESS), str):
        return content, f"{source}: {ACCESS}"
    file = source.parent / os.path.expanduser(written[ACCESS])
    content[ACCESS] = _with_files_beside(file, read_keys(file, "--tls-cert"))
    return content, str(file)


def _with_files_beside(source: Path, section: Any) -> Any:
    if not isinstance(section, Mapping):
        return section  # which is refused later, where it has to be one
    beside = {key: _beside(source.parent, section[key]) for key in FILES if key in section}
    return {**section, **beside}


def _beside(folder: Path, written: Any) -> Any:
    if not isinstance(written, str) or not written or not can_be_a_path(written):
        return written  # which is refused later
    here = folder / os.path.expanduser(written)
    if os.path.isfile(written) and not os.path.isfile(here):
        return written
    return str(here.absolute())


def _layers(
    command: Command[Any], flags: dict[str, Any], content: dict[str, Any], path: Path, access: str
) -> list[Layer]:
    """Return the values that all sources have for a command's options, the strongest first."""
    options = command.options
    fields = {str(field.alias): field for field in options.model_fields.values()}
    own = _section(content, command.name, path)
    _refuse_unknown(own, fields, f"{path}: {command.name}: ")
    _refuse_unknown(_section(content, ACCESS, path), _OF_ACCESS, f"{access}: ")
    lent = [
        (alias, mark.section, mark.key or alias)
        for alias, field in fields.items()
        for mark in marks_of(field)
        if isinstance(mark, AlsoIn)
    ]
    if issubclass(options, ReadingOptions):
        flags = _with_folder(flags, options.which, "")
        own = _with_folder(own, options.which, f"{path}: {command.name}: ")
        if options.which in {*flags, *own} or fields[options.which].default is not None:
            place = [str(field.alias) for field in PlaceOptions.model_fields.values()]
            lent += [(alias, PARAMETER_SERVER.name, alias) for alias in place]
    layers = [Layer(flags), Layer(own, f"{path}: {command.name}")]
    for section, of_section in itertools.groupby(lent, key=lambda each: each[1]):
        theirs = _section(content, section, path)
        values = {alias: theirs[key] for alias, _, key in of_section if key in theirs}
        layers.append(Layer(values, access if section == ACCESS else f"{path}: {section}"))
    return layers


def _with_folder(values: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """Return options with the folder of a checkpoint's file, if ``key`` is its path, as its place.

    ConfigurationError where these options name another place, too.
    """
    folder = folder_of_checkpoint(values.get(key))
    if folder is None:
        return values
    for other in ALTERNATIVES:
        if other in values:
            raise ConfigurationError(
                f"{where}{key} {values[key]} is in the folder {folder}, and {other} names "
                "a place, too: give one of them"
            )
    return {**values, ALTERNATIVES[0]: folder}


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
    unknown = [
        key if isinstance(key, str) else as_written(key) for key in content if key not in known
    ]
    if unknown:
        raise ConfigurationError(f"{where}{no_such_keys(unknown, known)}")


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
