"""What does not fit together about populations: members, hyperparameters and episodes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from relaax.configuration.population_rules import (
    PSRO_TAG,
    League,
    PopulationRule,
    Psro,
    SelfPlay,
    VanillaPbt,
    is_number,
    mistakes_of_members,
    population_rule,
    stream_mistake,
    value_at,
)
from relaax.errors import ConfigurationError
from relaax.experiments.draw_checks import mistakes_of_draws
from relaax.experiments.eval_checks import evaluating, mistakes_of_evaluated_stream
from relaax.experiments.league_checks import (
    mistakes_of_learners,
    mistakes_of_self_play,
    reporting,
    unused_learners,
)
from relaax.experiments.population import copies, hyperparameters_of, streams_of
from relaax.experiments.stream_checks import sample_streams_of, unknown_name
from relaax.experiments.workers import (
    InferenceStream,
    ParameterDB,
    PopulationManager,
    TrainerWorker,
)
from relaax.experiments.written import NamedExperiment


def mistakes_of_populations(experiment: NamedExperiment) -> list[str]:
    """Return a sentence for each mistake."""
    managers = experiment.config.population_manager
    found = [
        f"population_manager: {number}: {mistake}"
        for number, manager in enumerate(managers)
        for mistake in _mistakes(manager, experiment)
    ]
    members = Counter(name for manager in managers for name in manager.population)
    return [
        *found,
        *(
            f"population_manager: population: {name!r} is a member {count} times: a policy is "
            "once in one population"
            for name, count in members.items()
            if count > 1
        ),
    ]


def _mistakes(manager: PopulationManager, experiment: NamedExperiment) -> Iterator[str]:
    algorithm, stream = manager.population_algorithm, manager.population_sample_stream
    if stream is not None:
        yield from (
            f"population_sample_stream: {mistake}"
            for mistake in mistakes_of_evaluated_stream(stream, experiment)
        )
    try:
        rule = population_rule(algorithm.type_, algorithm.args)
    except ConfigurationError as error:
        yield f"population_algorithm: {error}"
        return
    mistake = stream_mistake(algorithm.type_, rule, stream is not None)
    if mistake is not None:
        yield mistake
        return
    yield from _members(manager, rule, experiment)


def _members(
    manager: PopulationManager, rule: PopulationRule, experiment: NamedExperiment
) -> Iterator[str]:
    """Yield what does not fit between a rule and the members' trainers."""
    type_ = manager.population_algorithm.type_
    yield from mistakes_of_members(type_, rule, manager.population, manager.initial_hyperparams)
    yield from _trained(manager, experiment)
    trainers = {each.policy_name: each for each in reversed(experiment.config.trainers)}
    members = [trainers[name] for name in manager.population if name in trainers]
    if isinstance(rule, VanillaPbt):
        for each in members[:1]:
            yield from _explored(rule, hyperparameters_of(experiment, each))
    if isinstance(rule, League):
        yield from mistakes_of_learners(rule, manager, experiment)
        pairs = [[trainers.get(name) for name in pair] for pair in rule.exploited.items()]
        yield from (each for pair in pairs for each in _fitting(*pair))
    if isinstance(rule, SelfPlay):
        yield from mistakes_of_self_play(rule, manager, experiment)
    yield from mistakes_of_draws(rule, manager, experiment)
    if isinstance(rule, Psro):
        yield from _evaluating(manager, experiment)
    if rule.copies and len(members) == len(manager.population):
        yield from _alike(members, experiment)
    elif not rule.copies:
        yield from (mistake for each in members for mistake in _versions(each, type_, rule))


def _trained(manager: PopulationManager, experiment: NamedExperiment) -> Iterator[str]:
    """Yield members that have no trainer, or several."""
    counts = Counter(trainer.policy_name for trainer in experiment.config.trainers)
    for name in manager.population:
        if name not in counts:
            yield f"population: {unknown_name('policy', name, counts, 'trainer')}"
        elif counts[name] > 1:
            yield (
                f"population: {name!r} has {counts[name]} trainers, which share their parameters: "
                "a member has one"
            )


def _explored(rule: VanillaPbt, hyperparameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield hyperparameters that are to be changed, and cannot be."""
    for number, each in enumerate(rule.explore_configs):
        try:
            value = value_at(hyperparameters, each.keys)
        except ConfigurationError as error:
            yield f"population_algorithm: args: explore_configs: {number}: keys: {error}"
        else:
            if each.method == "perturb" and not is_number(value):
                yield (
                    f"population_algorithm: args: explore_configs: {number}: perturb multiplies "
                    f"numbers, and {'.'.join(each.keys)} is {value!r}"
                )


def _evaluating(manager: PopulationManager, experiment: NamedExperiment) -> Iterator[str]:
    """Yield why it is unknown which two versions have played an episode."""
    (stream,) = streams_of(manager)
    actors = [
        actor
        for actor in experiment.config.actors
        if actor.is_evaluation
        and any(stream in sample_streams_of(actor, spec) for spec in actor.agent_specs)
    ]
    if len(actors) != 1 or actors[0].ring_size > 1:
        yield (
            f"population_sample_stream: psro has one actor worker with is_evaluation: true and "
            f"ring_size: 1 whose episodes go to {stream!r}, and here are {len(actors)}: episodes "
            "follow one another, so that their versions are known"
        )
    for each in (each for actor in actors for each in actor.inference_streams):
        is_inline = each.type_ is InferenceStream.Type.INLINE
        if not is_inline or each.policy_identifier != PSRO_TAG or each.pull_interval_seconds:
            yield (
                f"population_sample_stream: the actor worker of {stream!r} has inline streams with "
                f"policy_identifier: {PSRO_TAG}, which pull at resets"
            )


def _versions(trainer: TrainerWorker, type_: str, rule: PopulationRule) -> Iterator[str]:
    """Yield why numbers of a policy's versions cannot be set, or no version is kept."""
    name = trainer.policy_name
    if trainer.parameter_db.type_ is not ParameterDB.Type.METADATA:
        yield (
            f"population: {type_} sets numbers of versions of {name!r}: give all workers "
            "parameter_db: {type_: METADATA}"
        )
    is_opponent = isinstance(rule, SelfPlay | League)
    if isinstance(rule, League) and name in rule.exploited:  # it is tagged when it begins anew
        is_opponent = False
    if is_opponent and not (trainer.push_frequency_steps or trainer.push_frequency_seconds):
        yield (
            f"population: no version of {name!r} is tagged to be an opponent: give its trainer "
            "push_frequency_steps or push_frequency_seconds"
        )


def _alike(members: list[TrainerWorker], experiment: NamedExperiment) -> Iterator[str]:
    """Yield why members cannot take the parameters and hyperparameters of others."""
    first = members[0]
    for other in members[1:]:
        yield from _fitting(first, other)
        if first.trainer.type_ != other.trainer.type_:
            continue
        pair = f"{first.policy_name!r} and {other.policy_name!r}"
        keys = [_keys(hyperparameters_of(experiment, each)) for each in (first, other)]
        if keys[0] != keys[1]:
            different = ", ".join(sorted(keys[0] ^ keys[1]))
            yield (
                f"population: of {pair} only one has a value of {different}: give it to both, in "
                "initial_hyperparams or the trainer's args"
            )


def _fitting(first: TrainerWorker | None, other: TrainerWorker | None) -> Iterator[str]:
    """Yield why one of two members cannot take the parameters of the other."""
    if first is None or other is None:  # as is said of the population
        return
    pair = f"{first.policy_name!r} and {other.policy_name!r}"
    if first.policy != other.policy:
        yield f"population: {pair} have different policies: neither fits the other's parameters"
    if first.trainer.type_ != other.trainer.type_:
        yield f"population: {pair} have different trainers: each learns in its own way"


def _keys(hyperparameters: Mapping[str, Any], before: str = "") -> set[str]:
    """Return all keys, those of inner sections too."""
    found = set()
    for key, value in hyperparameters.items():
        found.add(before + key)
        if isinstance(value, Mapping):
            found |= _keys(value, f"{before}{key}.")
    return found


def unused_populations(experiment: NamedExperiment) -> Iterator[str]:
    """Yield streams and members without episodes. The experiment has no other mistake."""
    played = evaluating(experiment) | set(reporting(experiment))
    for number, manager in enumerate(experiment.config.population_manager):
        place = f"population_manager: {number}"
        which = "with is_evaluation: true " if copies(manager) else ""
        if manager.population_sample_stream is None:
            yield from (f"{place}: {each}" for each in unused_learners(manager, played))
            continue
        stream = manager.population_sample_stream.stream_name
        for name in manager.population:
            if (stream, name) not in played:
                yield (
                    f"{place}: population_sample_stream: no actor {which}has an agent of the "
                    f"policy {name!r} whose episodes go to the stream {stream!r}"
                )
