"""The command line of the programs that drive environments."""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaax.address import Address
from relaax.client.backoff import Backoff
from relaax.errors import ConfigurationError
from relaax.evaluation import Evaluation


@dataclass(frozen=True)
class VideoOptions:
    """Which episodes are recorded, and where."""

    directory: Path
    #: The first episode is recorded, and each one that comes so many after it.
    every: int = 10
    #: So many of the newest files are kept.
    most: int = 10


@dataclass(frozen=True)
class RunnerOptions:
    """What the command line says."""

    rlx_server: str
    env: str
    count: int
    seed: int | None
    episodes: int | None
    backoff: Backoff
    per_connection: int
    env_kwargs: dict[str, Any]
    #: How to evaluate; None trains.
    evaluate: Evaluation | None = None
    #: What is recorded of the first environment; None records nothing.
    video: VideoOptions | None = None

    @property
    def environments(self) -> int:
        """How many environments there are: not more than episodes."""
        return self.count if self.episodes is None else min(self.count, self.episodes)

    @property
    def connections(self) -> list[range]:
        """Which environments each connection carries; a connection is a process."""
        numbers = range(self.environments)
        return [
            numbers[first : first + self.per_connection]
            for first in range(0, self.environments, self.per_connection)
        ]

    def episodes_of(self, index: int) -> int | None:
        """Return how many episodes connection ``index`` plays: the shares of its environments."""
        if self.episodes is None:
            return None
        share, rest = divmod(self.episodes, self.environments)
        return sum(share + (number < rest) for number in self.connections[index])


def build_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all programs share."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument(
        "--rlx-server",
        required=True,
        type=_server,
        metavar="HOST:PORT",
        help="where the RLX server listens",
    )
    parser.add_argument(
        "--env",
        required=True,
        metavar="ID",
        help="the environment's name in Gymnasium; MODULE:NAME imports its module before",
    )
    parser.add_argument(
        "--count",
        type=_positive,
        default=1,
        metavar="N",
        help="how many environments to play (default 1)",
    )
    parser.add_argument(
        "--per-connection",
        type=_positive,
        default=1,
        metavar="K",
        help="environments that share a process and a connection (default 1: a process for each); "
        "more are faster if a step of the environment is cheap",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="S",
        help="seed of the first environment; the next one gets S + 1",
    )
    parser.add_argument(
        "--episodes", type=_positive, metavar="N", help="stop after N episodes in all"
    )
    parser.add_argument(
        "--attempts",
        type=_positive,
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
        "--record-video",
        type=Path,
        metavar="DIR",
        help="record episodes of the first environment as MP4 files (needs relaax[video])",
    )
    parser.add_argument(
        "--record-every",
        type=_positive,
        default=VideoOptions.every,
        metavar="N",
        help="record every N-th episode, beginning with the first (default %(default)s)",
    )
    parser.add_argument(
        "--max-videos",
        type=_positive,
        default=VideoOptions.most,
        metavar="M",
        help="keep the M newest files (default %(default)s)",
    )
    parser.add_argument(
        "--env-kwargs",
        type=_json_object,
        default={},
        metavar="JSON",
        help="further arguments for the environment, as a JSON object",
    )
    return parser


def options_of(arguments: argparse.Namespace) -> RunnerOptions:
    """Return the shared options among ``arguments``; what is recorded is rendered as pictures."""
    video, env_kwargs = None, arguments.env_kwargs
    if arguments.record_video is not None:
        video = VideoOptions(arguments.record_video, arguments.record_every, arguments.max_videos)
        env_kwargs = {"render_mode": "rgb_array", **env_kwargs}
    return RunnerOptions(
        rlx_server=arguments.rlx_server,
        env=arguments.env,
        count=arguments.count,
        seed=arguments.seed,
        episodes=arguments.episodes,
        backoff=Backoff(attempts=arguments.attempts),
        per_connection=arguments.per_connection,
        env_kwargs=env_kwargs,
        evaluate=arguments.evaluate,
        video=video,
    )


def parse_options(argv: list[str]) -> RunnerOptions:
    """Return what ``argv`` says; exits with status 2 and a message if it cannot be used."""
    parser = build_parser("Play a Gymnasium environment with the actions of an RLX server.")
    return options_of(parser.parse_args(argv))


def _server(text: str) -> str:
    try:
        return str(Address.parse(text))
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1 is needed, not {text!r}")
    return int(text)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error}: {text!r}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"a JSON object is needed, not {text!r}")
    return value
