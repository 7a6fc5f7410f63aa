"""Drives Gymnasium environments through an RLX client: a class, and a command.

    python -m relaax.client.gymnasium_runner --rlx-server localhost:7001 --env CartPole-v1 --count 4

The worker on the server reports an episode's reward, length and time. The client alone can measure
'act latency', in seconds, with the network, and reports it.
"""

import sys
from dataclasses import replace

from relaax.client.child_process import ProcessTask
from relaax.client.gymnasium_factory import EnvironmentFactory, GymnasiumFactory
from relaax.client.gymnasium_tasks import (
    GymnasiumRunner,
    SingleEnvironmentTask,
    VectorEnvironmentsTask,
)
from relaax.client.run_environments import fitting_this_process, run_environments
from relaax.client.run_options import RunnerOptions, parse_options
from relaax.client.transport import is_in_one_process
from relaax.errors import ConfigurationError

__all__ = ["GymnasiumFactory", "GymnasiumRunner", "main", "run_command"]


def run_command(options: RunnerOptions, make_environment: EnvironmentFactory) -> int:
    """Run the environments, a process for each connection, and return the exit status.

    With a server in this process all share one connection here; where they cannot, one is played.
    2 and a message when options do not fit together, or when several environments share a
    connection and ``make_environment`` has no method ``vector`` (``gymnasium_factory``).
    """
    if is_in_one_process() and options.video is None and hasattr(make_environment, "vector"):
        options = replace(options, per_connection=options.environments)
    else:
        options = fitting_this_process(options)
    try:
        return run_environments(_task(options, make_environment), options)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2


def _task(options: RunnerOptions, make_environment: EnvironmentFactory) -> ProcessTask:
    """Return the task of each process."""
    if options.per_connection == 1:
        return SingleEnvironmentTask(options, make_environment)
    if options.video is not None:
        raise ConfigurationError("--record-video needs --per-connection 1")
    if not hasattr(make_environment, "vector"):
        raise ConfigurationError("--per-connection needs a factory with a method 'vector'")
    return VectorEnvironmentsTask(options, make_environment)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = parse_options(sys.argv[1:] if argv is None else argv)
    return run_command(options, GymnasiumFactory(options.env, options.env_kwargs))


if __name__ == "__main__":
    sys.exit(main())
