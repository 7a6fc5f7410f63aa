"""The command line of the programs that drive Gymnasium environments."""

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relaax.client.run_options import RunOptions, add_run_options, run_options
from relaax.processes.whole_numbers import positive


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


def build_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that programs for Gymnasium environments share."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    add_run_options(parser)
    parser.add_argument(
        "--env",
        required=True,
        metavar="ID",
        help="the environment's name in Gymnasium; MODULE:NAME imports its module before",
    )
    parser.add_argument(
        "--per-connection",
        type=positive,
        default=1,
        metavar="K",
        help="environments that share a process and a connection (default 1: a process for each); "
        "more are faster if a step of the environment is cheap",
    )
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
    parser.add_argument(
        "--env-kwargs",
        type=_json_object,
        default={},
        metavar="JSON",
        help="further arguments for the environment, as a JSON object",
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
