"""The command line that all programs which play environments share."""

import argparse
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from relaax.address import Address
from relaax.client.restarts import MOST_RESTARTS, TIMEOUT_S, WITHIN_S
from relaax.client.retry_policy import Backoff
from relaax.client.seeds import EnvironmentSeeds, seeds_of_this_program
from relaax.errors import ConfigurationError
from relaax.evaluation import Evaluation
from relaax.processes.whole_numbers import natural, positive


@dataclass(frozen=True)
class RunOptions:
    """The options of a run: where, what, how many and for how long."""

    rlx_server: str
    env: str
    count: int
    seed: int | None
    episodes: int | None
    backoff: Backoff
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

    def of_one_environment(self) -> Self:
        """Return the options with one environment, which plays all episodes."""
        return replace(self, count=1)


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
        seed=arguments.seed,
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
