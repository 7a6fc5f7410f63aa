"""Drives Gymnasium environments through an RLX client: a class, and a command.

    python -m relaax.client.gymnasium_runner --rlx-server localhost:7001 --env CartPole-v1 --count 4

The worker on the server reports an episode's reward, length and time. The client alone can measure
'act latency', in seconds, with the network, and reports it.
"""

import sys

from relaax.client.child_process import ProcessTask
from relaax.client.environment_runner import GymnasiumRunner
from relaax.client.gymnasium_factory import EnvironmentFactory, GymnasiumFactory
from relaax.client.gymnasium_tasks import SingleEnvironmentTask, VectorEnvironmentsTask
from relaax.client.run_environments import run_environments
from relaax.client.runner_options import RunnerOptions, parse_options
from relaax.errors import ConfigurationError

__all__ = ["GymnasiumFactory", "GymnasiumRunner", "main", "run_command"]


def run_command(options: RunnerOptions, make_environment: EnvironmentFactory) -> int:
    """Run the environments, a process for each connection, and return the exit status.

    ConfigurationError when several environments share a connection and ``make_environment`` has no
    method ``vector`` (``relaax.client.gymnasium_factory``), or when these are to be recorded.
    """
    if options.per_connection == 1:
        task: ProcessTask = SingleEnvironmentTask(options, make_environment)
    elif options.video is not None:
        raise ConfigurationError("--record-video needs --per-connection 1")
    elif hasattr(make_environment, "vector"):
        task = VectorEnvironmentsTask(options, make_environment)
    else:
        raise ConfigurationError("--per-connection needs a factory with a method 'vector'")
    sizes = [len(numbers) for numbers in options.connections]
    return run_environments(task, sizes, options.rlx_server, evaluates=options.evaluate is not None)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = parse_options(sys.argv[1:] if argv is None else argv)
    return run_command(options, GymnasiumFactory(options.env, options.env_kwargs))


if __name__ == "__main__":
    sys.exit(main())
