"""The command line of programs that play environments.

Servers and ``relaax-actor`` declare their options as fields of pydantic's models
(``relaax.configuration``). Clients need numpy alone, so that theirs are declared here; the few that
an actor has, too, differ in their defaults and texts.
"""

import argparse
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relaax.address import Address
from relaax.client.connector import Backoff
from relaax.client.restarts import MOST_RESTARTS, TIMEOUT_S, WITHIN_S
from relaax.client.seeds import EnvironmentSeeds, seeds_of_this_program
from relaax.errors import ConfigurationError
from relaax.processes.whole_numbers import natural, positive
from relaax.steps import Evaluation


@dataclass(frozen=True)
class RunOptions:
    """The options of a run."""

    rlx_server: str
    env: str
    count: int = 1
    episodes: int | None = None
    backoff: Backoff = field(default_factory=Backoff)
    #: How to evaluate; None trains.
    evaluate: Evaluation | None = None
    #: Touched while environments make steps, or wait for a server.
    health_file: Path | None = None
    #: The source of the environments' seeds, drawn from ``seed`` among others.
    seeds: EnvironmentSeeds = field(default_factory=lambda: EnvironmentSeeds(None))
    #: After so many seconds an environment that has not returned is made again; None waits.
    environment_timeout_s: float | None = TIMEOUT_S

    @property
    def environments(self) -> int:
        """How many environments there are: not more than episodes."""
        return self.count if self.episodes is None else min(self.count, self.episodes)

    @property
    def connections(self) -> list[range]:
        """Which environments each connection carries, one unless told otherwise."""
        return [range(number, number + 1) for number in range(self.environments)]

    def episodes_of(self, index: int, before: int = 0) -> int | None:
        """Return how many episodes connection ``index`` plays: the shares of its environments.

        It has played ``before`` of them already.
        """
        if self.episodes is None:
            return None
        share, rest = divmod(self.episodes, self.environments)
        return sum(share + (number < rest) for number in self.connections[index]) - before

    def name_of(self, number: int) -> str:
        """Return the name of an environment in messages."""
        return f"environment {number} ({self.env})"


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all programs share, without the environment's name."""
    parser.add_argument(
        "--rlx-server",
        required=True,
        type=_server,
        metavar="HOST:PORT",
        help="where the RLX server listens",
    )
    parser.add_argument(
        "--count",
        type=positive,
        default=1,
        metavar="N",
        help="how many environments to play (default 1)",
    )
    parser.add_argument(
        "--seed",
        type=natural,
        metavar="S",
        help="the source of all environments' seeds, with the number of each, the line "
        "of this program (the variable RELAAX_LINE), its copy (RELAAX_COPY) and its start "
        "(RELAAX_INCARNATION)",
    )
    parser.add_argument(
        "--episodes", type=positive, metavar="N", help="stop after N episodes in all"
    )
    parser.add_argument(
        "--attempts",
        type=positive,
        default=Backoff.attempts,
        metavar="N",
        help="give up after N failed connections in a row (default %(default)s)",
    )
    parser.add_argument(
        "--evaluate",
        nargs="?",
        type=Evaluation,
        const=Evaluation.DETERMINISTIC,
        metavar="{deterministic,stochastic}",
        help="learn nothing: play each episode with one policy, by its mode (deterministic, the "
        "default) or with samples, and show the mean return at the end",
    )
    parser.add_argument(
        "--environment-timeout",
        type=seconds,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help="make an environment again that takes longer for a step, or for the start of an "
        "episode (default %(default)g; 0: wait for ever), as one that raises or exits, or returns "
        f"a number that is not finite; it is lost if that happens {MOST_RESTARTS + 1} times within "
        f"{WITHIN_S:g} s, and the others play on",
    )
    parser.add_argument(
        "--health-file",
        type=Path,
        metavar="FILE",
        help="touch this file every second while environments make steps, or wait for a server",
    )


def run_options(arguments: argparse.Namespace, env: str) -> RunOptions:
    """Return the options among ``arguments``; ``env`` is the environment's name."""
    return RunOptions(
        rlx_server=arguments.rlx_server,
        env=env,
        count=arguments.count,
        episodes=arguments.episodes,
        backoff=Backoff(attempts=arguments.attempts),
        evaluate=arguments.evaluate,
        health_file=arguments.health_file,
        environment_timeout_s=arguments.environment_timeout or None,
        seeds=seeds_of_this_program(arguments.seed, arguments.evaluate is not None),
    )


def _server(text: str) -> str:
    try:
        return str(Address.parse(text))
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def seconds(text: str) -> float:
    """Return a number of seconds, 0 or more; for ``argparse``."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value


def probability(text: str) -> float:
    """Return a number between 0 and 1; for ``argparse``."""
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError
    return value


@dataclass(frozen=True)
class VideoOptions:
    """Which episodes are recorded, and where."""

    directory: Path
    #: The first episode is recorded, and then every so many.
    every: int = 10
    #: So many of the newest files are kept.
    most: int = 10


@dataclass(frozen=True)
class RunnerOptions(RunOptions):
    """The options of a run of Gymnasium environments."""

    per_connection: int = 1
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    #: Recordings of the first environment; None records nothing.
    video: VideoOptions | None = None

    @property
    def connections(self) -> list[range]:
        """Which environments each connection carries; a connection is a process."""
        numbers = range(self.environments)
        return [
            numbers[first : first + self.per_connection]
            for first in range(0, self.environments, self.per_connection)
        ]


def add_environment_options(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options of environments that are found by a ``name``, which says how."""
    parser.add_argument("--env", required=True, metavar="ID", help=name)
    parser.add_argument(
        "--per-connection",
        type=positive,
        default=1,
        metavar="K",
        help="environments that share a process and a connection (default 1: a process for each); "
        "more are faster if a step of the environment is cheap",
    )
    parser.add_argument(
        "--env-kwargs",
        type=_json_object,
        default={},
        metavar="JSON",
        help="further arguments for the environment, as a JSON object",
    )


def build_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that programs for Gymnasium environments share."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    add_run_options(parser)
    name = "the environment's name in Gymnasium; MODULE:NAME imports its module before"
    add_environment_options(parser, name)
    parser.add_argument(
        "--record-video",
        type=Path,
        metavar="DIR",
        help="record episodes of the first environment as MP4 files (needs relaax[video])",
    )
    parser.add_argument(
        "--record-every",
        type=positive,
        default=VideoOptions.every,
        metavar="N",
        help="record every N-th episode, beginning with the first (default %(default)s)",
    )
    parser.add_argument(
        "--max-videos",
        type=positive,
        default=VideoOptions.most,
        metavar="M",
        help="keep the M newest files (default %(default)s)",
    )
    return parser


def options_of(arguments: argparse.Namespace) -> RunnerOptions:
    """Return the shared options among ``arguments``; recording needs rendering as pictures."""
    video, env_kwargs = None, arguments.env_kwargs
    if arguments.record_video is not None:
        video = VideoOptions(arguments.record_video, arguments.record_every, arguments.max_videos)
        env_kwargs = {"render_mode": "rgb_array", **env_kwargs}
    return RunnerOptions(
        **vars(run_options(arguments, arguments.env)),
        per_connection=arguments.per_connection,
        env_kwargs=env_kwargs,
        video=video,
    )


def parse_options(argv: list[str]) -> RunnerOptions:
    """Return the options in ``argv``; exits with status 2 and a message for unusable ones."""
    parser = build_parser("Play a Gymnasium environment with the actions of an RLX server.")
    return options_of(parser.parse_args(argv))


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error}: {text!r}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"a JSON object is needed, not {text!r}")
    return value
