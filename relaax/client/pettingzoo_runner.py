"""Plays PettingZoo's environments: the task of a process, and the whole run."""

import argparse
import contextlib
import sys
from dataclasses import dataclass
from functools import partial
from typing import get_args

from relaax.client import gymnasium_runner
from relaax.client.multi_agent_client import MultiAgentClient
from relaax.client.multi_agent_runner import MultiAgentRunner
from relaax.client.pettingzoo_environments import PettingZooEnvironment, PettingZooFactory
from relaax.client.pettingzoo_team import TeamFactory, TeamReward
from relaax.client.run_environments import fitting_this_process, run_environments
from relaax.client.run_options import (
    RunnerOptions,
    add_environment_options,
    add_run_options,
    run_options,
)
from relaax.client.simulator import RunObserver, RunResult
from relaax.client.simulator_task import made, naming
from relaax.errors import ConfigurationError


@dataclass(frozen=True)
class PettingZooTask:
    """Plays the environments of one connection."""

    options: RunnerOptions
    factory: PettingZooFactory

    def __call__(self, index: int, report: RunObserver) -> RunResult:
        """Play the share of process ``index``."""
        options = self.options
        with naming(options.env), contextlib.ExitStack() as open_ones:
            environments = made(partial(self._made, index, report), report)
            for environment in environments:
                open_ones.enter_context(contextlib.closing(environment))
            spaces = environments[0].spaces_of(environments[0].agents)
            client = MultiAgentClient(
                options.rlx_server,
                environments[0].agents,
                len(environments),
                reconnect=options.backoff,
                environment=options.env,
                observation_space=spaces.observation_space,
                action_space=spaces.action_space,
                evaluate=options.evaluate,
            )
            open_ones.enter_context(client)
            runner = MultiAgentRunner(environments, client, observer=report)
            return runner.run(options.episodes_of(index, report.episodes_before))

    def _made(self, index: int, report: RunObserver) -> list[PettingZooEnvironment]:
        seeds = self.options.seeds
        return [
            self.factory(seeds.of(number, report.restarts), report)
            for number in self.options.connections[index]
        ]


def build_parser(description: str) -> argparse.ArgumentParser:
    """Return the parser of a program that plays PettingZoo's environments."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    add_run_options(parser)
    name = "the environment's name in PettingZoo, such as classic/tictactoe-v3, or its module"
    add_environment_options(parser, name)
    parser.add_argument(
        "--api",
        choices=("aec", "parallel"),
        help="PettingZoo's interface: agents act in turns (aec) or at the same time (parallel); "
        "parallel where there is one, unless it is said",
    )
    parser.add_argument(
        "--team",
        choices=get_args(TeamReward),
        help="play all agents as one, who act at the same time: its reward is the mean or the sum "
        "of theirs, its action a number for each (MultiDiscrete)",
    )
    parser.add_argument(
        "--state",
        action="store_true",
        help="with --team: send the environment's own state, too, beside what the agents observe",
    )
    return parser


def run_command(arguments: argparse.Namespace) -> int:
    """Run the environments, a process for each connection, and return the exit status."""
    options = RunnerOptions(
        **vars(run_options(arguments, arguments.env)),
        per_connection=arguments.per_connection,
        env_kwargs=arguments.env_kwargs,
    )
    factory = PettingZooFactory(options.env, options.env_kwargs, arguments.api)
    try:
        if arguments.team is not None:
            return _play_team(options, factory, arguments)
        if arguments.state:
            raise ConfigurationError("--state is for --team: agents observe for themselves alone")
        options = fitting_this_process(options)
        return run_environments(PettingZooTask(options, factory), options)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2


def _play_team(
    options: RunnerOptions, factory: PettingZooFactory, arguments: argparse.Namespace
) -> int:
    """Play all agents as one, as Gymnasium's environments are played."""
    if arguments.api == "aec":
        raise ConfigurationError("--team: agents that act in turns (--api aec) are no team")
    return gymnasium_runner.run_command(
        options, TeamFactory(factory, arguments.team, arguments.state)
    )
