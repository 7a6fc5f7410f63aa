"""What does not fit together about populations: members, hyperparameters and episodes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from relaax.configuration.population_rules import population_rule
from relaax.errors import ConfigurationError
from relaax.experiments.eval_checks import evaluating, mistakes_of_evaluated_stream
from relaax.experiments.population import hyperparameters_of
from relaax.experiments.stream_checks import unknown_name
from relaax.experiments.workers import PopulationManager, TrainerWorker
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
    yield from (
        f"population_sample_stream: {mistake}"
        for mistake in mistakes_of_evaluated_stream(manager.population_sample_stream, experiment)
    )
    for name in manager.initial_hyperparams:
        if name not in manager.population:
            yield f"initial_hyperparams: {name!r} is no member of the population"
    algorithm = manager.population_algorithm
    try:
        rule = population_rule(algorithm.type_, algorithm.args)
    except ConfigurationError as error:
        yield f"population_algorithm: {error}"
    else:
        if rule.population is not None and list(rule.population) != manager.population:
            yield "population_algorithm: args: population: is another one than the manager's"
    trainers: dict[str, TrainerWorker] = {}
    counts = Counter(trainer.policy_name for trainer in experiment.config.trainers)
    for trainer in experiment.config.trainers:
        trainers.setdefault(trainer.policy_name, trainer)
    for name in manager.population:
        if name not in trainers:
            yield f"population: {unknown_name('policy', name, trainers, 'trainer')}"
        elif counts[name] > 1:
            yield (
                f"population: {name!r} has {counts[name]} trainers, which share their parameters: "
                "a member has one"
            )
    if all(name in trainers for name in manager.population):
        yield from _alike([trainers[name] for name in manager.population], experiment)


def _alike(members: list[TrainerWorker], experiment: NamedExperiment) -> Iterator[str]:
    """Yield why members cannot take the parameters and hyperparameters of others."""
    first = members[0]
    for other in members[1:]:
        pair = f"{first.policy_name!r} and {other.policy_name!r}"
        if first.policy != other.policy:
            yield f"population: {pair} have different policies: neither fits the other's parameters"
        if first.trainer.type_ != other.trainer.type_:
            yield f"population: {pair} have different trainers: each learns in its own way"
            continue
        keys = [_keys(hyperparameters_of(experiment, each)) for each in (first, other)]
        if keys[0] != keys[1]:
            different = ", ".join(sorted(keys[0] ^ keys[1]))
            yield (
                f"population: of {pair} only one has a value of {different}: give it to both, in "
                "initial_hyperparams or the trainer's args"
            )


def _keys(hyperparameters: Mapping[str, Any], before: str = "") -> set[str]:
    """Return all keys, those of inner sections too."""
    found = set()
    for key, value in hyperparameters.items():
        found.add(before + key)
        if isinstance(value, Mapping):
            found |= _keys(value, f"{before}{key}.")
    return found


def unused_populations(experiment: NamedExperiment) -> Iterator[str]:
    """Yield members whose episodes are not evaluated. The experiment has no other mistake."""
    played = evaluating(experiment)
    for number, manager in enumerate(experiment.config.population_manager):
        stream = manager.population_sample_stream.stream_name
        for name in manager.population:
            if (stream, name) not in played:
                yield (
                    f"population_manager: {number}: population_sample_stream: no actor with "
                    f"is_evaluation: true has an agent of the policy {name!r} whose episodes go "
                    f"to the stream {stream!r}"
                )
