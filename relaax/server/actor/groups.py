"""Plays environments with several agents: each group of agents has a policy and a sink."""

import json
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

from relaax.client.connector import Backoff
from relaax.client.multi_agent_client import MultiAgentClient
from relaax.client.multi_agent_runner import AgentEnvironment, MultiAgentRunner
from relaax.client.seeds import seeds_of_this_program
from relaax.client.simulator import RunObserver, RunOutcome, RunResult
from relaax.client.simulator_task import made, naming
from relaax.compat.surreal.session import TRAINING
from relaax.configuration import ActorConfiguration, ActorOptions, load_actor
from relaax.configuration.actor_agents import ActorAgents
from relaax.configuration.addresses import with_addresses
from relaax.errors import ConfigurationError
from relaax.server.actor.environments import AgentsFactory
from relaax.server.actor.routing import CountedEnvironment, Resets, RoutedClient
from relaax.server.actor.samples import with_samples
from relaax.server.actor.stages import StagedAgents
from relaax.server.actor.wiring import EVALUATIONS, ActorParts, Shared, SinkWrapper, algorithm_of
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, TAKEN, KeptCounts

#: Clients need an address for their messages; none is connected to.
THIS_PROCESS = "localhost:1"


def load_group(agents: ActorAgents, number: int, options: ActorOptions) -> ActorConfiguration:
    """Return the configuration of a group: its own words, with the environment of ``options``.

    Groups have different seeds.
    """
    words = [*agents.groups[number].arguments, "--env", str(options.env)]
    words += ["--actors", str(options.actors)]
    if options.env_kwargs:
        words += ["--env-kwargs", json.dumps(options.env_kwargs)]
    if agents.max_num_steps is not None:
        words += ["--limit-episode-length", str(agents.max_num_steps)]
    if options.episodes is not None:
        words += ["--episodes", str(options.episodes)]
    if options.seed is not None:
        words += ["--seed", str(options.seed + number)]
    configuration = load_actor(words)
    now = with_addresses(configuration.options, options.moved)
    return replace(configuration, options=now)


def samples_of(
    agents: ActorAgents, number: int, members: int, configuration: ActorConfiguration
) -> SinkWrapper:
    """Return what puts the samples of a group, with so many ``members``, before its sink."""
    group, policy = agents.groups[number], configuration.run_name
    team_size = members if group.is_team else 1
    return lambda sink: with_samples(sink, group, agents.max_num_steps, policy, team_size)


def play_groups(
    agents: ActorAgents,
    options: ActorOptions,
    factory: AgentsFactory,
    index: int,
    report: RunObserver,
    resources: ExitStack,
    shared: Shared,
) -> RunResult:
    """Play in the environments of actor ``index`` until one training is over, or all games are.

    Each game begins in the present stage, if there are stages.
    """
    resets, env, stage = Resets(), str(options.env), shared.stage
    seeds = seeds_of_this_program(options.seed)
    with naming(env):
        environments = made(
            lambda: [
                factory(seeds.of(index * agents.ring_size + place, report.restarts), report)
                for place in range(agents.ring_size)
            ],
            report,
        )
        for environment in environments:
            resources.enter_context(closing(environment))
        counted = [
            CountedEnvironment(each, resets, agents.max_num_steps)
            for each in (
                environments
                if stage is None
                else [StagedAgents(environment, stage) for environment in environments]
            )
        ]
        clients: dict[str, MultiAgentClient] = {}
        for number, members in agents.members(counted[0].agents).items():
            configuration = load_group(agents, number, options)
            wrap = samples_of(agents, number, len(members), configuration)
            client = _client_of(
                configuration, members, counted, index, report, resources, resets, wrap, shared
            )
            clients |= dict.fromkeys(members, client)
    runner = MultiAgentRunner(counted, RoutedClient(clients), observer=report)
    left = None if options.episodes is None else options.episodes - report.episodes_before
    return finished(runner.run(left))


def finished(result: RunResult) -> RunResult:
    """Return how an actor ends: the end of a training is what it has played for."""
    if result.outcome is RunOutcome.TRAINING_OVER:
        return RunResult(RunOutcome.FINISHED, result.message)
    return result


def _client_of(
    configuration: ActorConfiguration,
    members: Sequence[str],
    environments: Sequence[AgentEnvironment],
    index: int,
    report: RunObserver,
    resources: ExitStack,
    resets: Resets,
    wrap: SinkWrapper,
    shared: Shared,
) -> MultiAgentClient:
    """Return a client, by whose worker the policy of a group acts for its ``members``."""
    options = configuration.options
    algorithm, config = algorithm_of(configuration)
    name = configuration.algorithm.directory.name
    if algorithm.has_actor:
        raise ConfigurationError(f"{name} has an actor of its own, which plays for one agent alone")
    spaces = environments[0].spaces_of(members)
    parts = ActorParts(
        algorithm,
        config,
        options,
        index,
        KeptCounts([TAKEN, DELIVERED, DROPPED]).row(),
        resources,
        shared,
        report,
        environments=len(environments) * len(members),
        wrap=wrap,
        policy=configuration.run_name,
    )
    client = MultiAgentClient(
        THIS_PROCESS,
        members,
        len(environments),
        reconnect=Backoff(attempts=1),
        environment=str(options.env),
        observation_space=spaces.observation_space,
        action_space=spaces.action_space,
        evaluate=None if options.mode == TRAINING else EVALUATIONS[options.mode],
        transport=parts.worker(name, resets.reader()),
    )
    return resources.enter_context(client)
