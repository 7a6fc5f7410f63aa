"""The command ``relaax-actor``."""

import sys

from relaax.client.run_environments import run_environments
from relaax.client.run_options import RunnerOptions
from relaax.configuration import leave_undisturbed, load_actor, run_command
from relaax.configuration.actor_agents import read_agents
from relaax.server.actor.groups import load_group
from relaax.server.actor.task import ActorTask
from relaax.server.actor.wiring import algorithm_of


def main() -> int:
    """Run actors and return the exit status."""
    status = run_command("relaax-actor", lambda: _act(sys.argv[1:]))
    leave_undisturbed()
    return status


def _act(arguments: list[str]) -> int:
    """Run a process for each actor; errors of the configuration are reported before."""
    configuration = load_actor(arguments)
    options = configuration.options
    algorithm_of(configuration)
    ring_size = 1
    if options.agents is not None:
        agents = read_agents(options.agents)
        ring_size = agents.ring_size
        for number in range(len(agents.groups)):
            algorithm_of(load_group(agents, number, options))
    actors = "1 actor" if options.actors == 1 else f"{options.actors} actors"
    purpose = options.mode if options.agents is None else f"agents of {options.agents}"
    print(f"{actors} in {options.env}, {purpose}", flush=True)
    run = RunnerOptions(
        rlx_server=str(options.parameter_server),
        env=str(options.env),
        count=options.actors * ring_size,
        per_connection=ring_size,
        environment_timeout_s=options.environment_timeout or None,
    )
    return run_environments(ActorTask(tuple(arguments)), run)


if __name__ == "__main__":
    sys.exit(main())
