"""Combines the command line, the YAML file and the defaults."""

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from relaax.errors import ConfigurationError
from relaax.hints import did_you_mean
from relaax.server.common.algorithm_location import locate_algorithm
from relaax.server.common.configuration.command_line import build_parser
from relaax.server.common.configuration.mistakes import as_written, explain
from relaax.server.common.configuration.options import (
    REPLACED,
    ActorOptions,
    LearnerOptions,
    ParameterServerOptions,
    ReplayServerOptions,
    RlxServerOptions,
)
from relaax.server.common.configuration.yaml_reader import read_yaml

PARAMETER_SERVER = "relaax-parameter-server"
RLX_SERVER = "relaax-rlx-server"
LEARNER = "relaax-learner"
REPLAY_SERVER = "relaax-replay-server"
ACTOR = "relaax-actor"
ALGORITHM = "algorithm"

_SECTIONS = (PARAMETER_SERVER, RLX_SERVER, LEARNER, REPLAY_SERVER, ACTOR, ALGORITHM)

#: The key of that section that may name a file.
NETWORK = "network"

#: The option that other sections take from the learner's.
REPLAY_SERVERS = "--replay-servers"

Options = TypeVar("Options", bound=BaseModel)

#: A flag for one of these options replaces the other one in the YAML file.
_ALTERNATIVES = ("--checkpoint-dir", "--checkpoint-aws-s3")


@dataclass(frozen=True)
class AlgorithmSection:
    """The algorithm's folder and parameters."""

    directory: Path
    #: The YAML's ``algorithm:`` section without ``path`` and ``name``.
    parameters: Mapping[str, Any]
    #: The YAML file, for messages.
    source: Path


@dataclass(frozen=True)
class ParameterServerConfiguration:
    """The whole configuration of a parameter server."""

    options: ParameterServerOptions
    algorithm: AlgorithmSection
    #: The YAML's section of the RLX server as it is written, for the record.
    rlx_server: Any = None

    @property
    def run_name(self) -> str:
        """The name of the run in TensorBoard: ``--run-name``, or that of the YAML file."""
        return self.options.run_name or self.algorithm.source.stem


@dataclass(frozen=True)
class RlxServerConfiguration:
    """The whole configuration of an RLX server."""

    options: RlxServerOptions
    algorithm: AlgorithmSection


@dataclass(frozen=True)
class LearnerConfiguration:
    """The whole configuration of a learner."""

    options: LearnerOptions
    algorithm: AlgorithmSection


@dataclass(frozen=True)
class ReplayServerConfiguration:
    """The whole configuration of a replay server."""

    options: ReplayServerOptions
    algorithm: AlgorithmSection


@dataclass(frozen=True)
class ActorConfiguration:
    """The whole configuration of actors."""

    options: ActorOptions
    algorithm: AlgorithmSection


_PARAMETER_SERVER_EXAMPLES = """\
On one machine:
  relaax-parameter-server --config config.yaml --bind localhost:7000 \\
    --checkpoint-dir training/checkpoints --metrics-dir training/metrics

On a cluster:
  relaax-parameter-server --config config.yaml --bind 0.0.0.0:7000 \\
    --checkpoint-aws-s3 my_bucket training/checkpoints --aws-keys aws-keys.yaml \\
    --metrics-dir training/metrics --metrics-aws-s3 my_bucket training/metrics
"""

_RLX_SERVER_EXAMPLES = """\
On one machine:
  relaax-rlx-server --config config.yaml --bind localhost:7001 --parameter-server localhost:7000

On a cluster, behind a load balancer:
  relaax-rlx-server --config config.yaml --bind 0.0.0.0:7001 \\
    --parameter-server parameter-server:7000 --timeout 120
"""

_LEARNER_EXAMPLES = """\
On one machine:
  relaax-learner --config config.yaml --bind localhost:7002 --parameter-server localhost:7000 \\
    --checkpoint-dir training/learner
"""

_REPLAY_SERVER_EXAMPLES = """\
Two servers that share what is stored:
  relaax-replay-server --config config.yaml --bind localhost:7003 \\
    --replay-servers localhost:7003 localhost:7004
  relaax-replay-server --config config.yaml --bind localhost:7004 \\
    --replay-servers localhost:7003 localhost:7004
"""

_ACTOR_EXAMPLES = """\
Beside a parameter server and a learner, without an RLX server:
  relaax-actor config.yaml --env Pendulum-v1 --actors 2

To be judged by the mode of what is published, 100 episodes:
  relaax-actor config.yaml --env Pendulum-v1 --mode eval_deterministic --episodes 100
"""


def load_parameter_server(arguments: Sequence[str]) -> ParameterServerConfiguration:
    """Return a parameter server's configuration; ConfigurationError for a mistake in it."""
    parser = build_parser(
        PARAMETER_SERVER,
        "Hold the global network, apply the workers' gradients, write checkpoints and metrics.",
        _PARAMETER_SERVER_EXAMPLES,
        7000,
        ParameterServerOptions,
    )
    flags = vars(parser.parse_args(arguments))
    options, algorithm, content = _load(flags, PARAMETER_SERVER, ParameterServerOptions)
    return ParameterServerConfiguration(options, algorithm, content.get(RLX_SERVER))


def load_rlx_server(arguments: Sequence[str]) -> RlxServerConfiguration:
    """Return an RLX server's configuration; ConfigurationError for a mistake in it."""
    parser = build_parser(
        RLX_SERVER,
        "Serve environments: workers choose their actions and learn from their rewards.",
        _RLX_SERVER_EXAMPLES,
        7001,
        RlxServerOptions,
    )
    known, others = parser.parse_known_args(arguments)
    flags = vars(known)
    if others:
        _follow_log_level(flags)
        _refuse_replaced(others)
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    options, algorithm, _ = _load(flags, RLX_SERVER, RlxServerOptions)
    return RlxServerConfiguration(options, algorithm)


def load_learner(arguments: Sequence[str]) -> LearnerConfiguration:
    """Return a learner's configuration; ConfigurationError for a mistake in it."""
    parser = build_parser(
        LEARNER,
        "Learn from what workers deliver, and publish what was learnt at the parameter server. "
        "For algorithms that have a learner, such as sac.",
        _LEARNER_EXAMPLES,
        7002,
        LearnerOptions,
    )
    flags = vars(parser.parse_args(arguments))
    options, algorithm, _ = _load(flags, LEARNER, LearnerOptions)
    return LearnerConfiguration(options, algorithm)


def load_replay_server(arguments: Sequence[str]) -> ReplayServerConfiguration:
    """Return a replay server's configuration; ConfigurationError for a mistake in it."""
    parser = build_parser(
        REPLAY_SERVER,
        "Store what workers deliver, and let the learner draw of it. For algorithms that have a "
        "learner, such as sac, where the learner itself is not to store the steps.",
        _REPLAY_SERVER_EXAMPLES,
        7003,
        ReplayServerOptions,
    )
    flags = vars(parser.parse_args(arguments))
    options, algorithm, _ = _load(flags, REPLAY_SERVER, ReplayServerOptions)
    return ReplayServerConfiguration(options, algorithm)


def load_actor(arguments: Sequence[str]) -> ActorConfiguration:
    """Return the configuration of actors; ConfigurationError for a mistake in it.

    The YAML file may come first, without ``--config``.
    """
    parser = build_parser(
        ACTOR,
        "Act in Gymnasium environments, with environment and policy in one process. For "
        "algorithms that have a learner, such as sac.",
        _ACTOR_EXAMPLES,
        7000,
        ActorOptions,
    )
    if arguments and not arguments[0].startswith("-"):
        arguments = ["--config", *arguments]
    flags = vars(parser.parse_args(arguments))
    options, algorithm, _ = _load(flags, ACTOR, ActorOptions)
    if options.env is None:
        raise ConfigurationError("--env: is missing: which environment is acted in?")
    return ActorConfiguration(options, algorithm)


def _load(
    flags: dict[str, Any], section: str, options: type[Options]
) -> tuple[Options, AlgorithmSection, dict[str, Any]]:
    """Return a server's options, the algorithm, and all that the YAML file holds."""
    path: Path = flags.pop("config")
    _follow_log_level(flags)
    content = read_yaml(path)
    if "--log-level" not in flags:
        _follow_log_level(content.get(section))
    _refuse_unknown(content, _SECTIONS, f"{path}: ")
    from_file = _section(content, section, path)
    known = [str(field.alias) for field in options.model_fields.values()]
    _refuse_unknown(from_file, known, f"{path}: {section}: ")
    if REPLAY_SERVERS in known and REPLAY_SERVERS in _section(content, LEARNER, path):
        from_file = {REPLAY_SERVERS: content[LEARNER][REPLAY_SERVERS], **from_file}
    _validate(options, from_file, f"{path}: {section}: ", strict=True)
    if any(name in flags for name in _ALTERNATIVES):
        from_file = {key: value for key, value in from_file.items() if key not in _ALTERNATIVES}
    _validate(options, flags, "", strict=False)
    return (
        options.model_validate({**from_file, **flags}),
        _algorithm(_section(content, ALGORITHM, path), path),
        content,
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


def _algorithm(section: dict[Any, Any], path: Path) -> AlgorithmSection:
    for key in section:
        if not isinstance(key, str):
            raise ConfigurationError(
                f"{path}: {ALGORITHM}: a key must be text, is {as_written(key)}"
            )
    parameters = {key: value for key, value in section.items() if key not in ("path", "name")}
    return AlgorithmSection(
        directory=locate_algorithm(section, path),
        parameters=_with_file_beside(path, parameters),
        source=path,
    )


def _with_file_beside(source: Path, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with the full path of a network's file in the YAML file's folder.

    Any other path is left to the working directory.
    """
    written = parameters.get(NETWORK)
    if not isinstance(written, str):
        return parameters
    beside = source.parent / os.path.expanduser(written)
    if not os.path.isfile(beside):  # false, too, where access is denied or the text is no path
        return parameters
    return {**parameters, NETWORK: str(beside.resolve())}
