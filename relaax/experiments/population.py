"""Files and options of a population's processes."""

from typing import Any

from relaax.configuration.population_rules import League, PopulationRule, SelfPlay, population_rule
from relaax.errors import ConfigurationError
from relaax.experiments.policies import args_of
from relaax.experiments.workers import PopulationManager, TrainerWorker
from relaax.experiments.written import NamedExperiment

#: Keys of a trainer's args that members keep: random numbers of their own, and the end of all.
KEPT = ("seed", "max_global_step", "anneal_from")

#: A member takes the parameters of a checkpoint that is no older than so many seconds.
CHECKPOINT_INTERVAL_S = 5.0


def hyperparameters_of(experiment: NamedExperiment, trainer: TrainerWorker) -> dict[str, Any]:
    """Return what a member takes over of another one: the trainer's args, but those it keeps."""
    args = args_of(experiment, trainer)
    return {key: value for key, value in args.items() if key not in KEPT}


def copies(manager: PopulationManager) -> bool:
    """Return whether members of a population copy one another."""
    algorithm = manager.population_algorithm
    return population_rule(algorithm.type_, algorithm.args).copies


def copying(manager: PopulationManager) -> set[str]:
    """Return the members of a population that take parameters of others, or give them."""
    if copies(manager):
        return set(manager.population)
    return {name for pair in exploited_of(manager).items() for name in pair}


def exploited_of(manager: PopulationManager) -> dict[str, str]:
    """Return the policy that each exploiter of a league exploits, by the exploiter's name."""
    rule = _rule(manager)
    return rule.exploited if isinstance(rule, League) else {}


def streams_of(manager: PopulationManager) -> dict[str, str | None]:
    """Return the streams whose episodes a population's manager takes, by their names.

    Each has the member against whose newest version past versions have played there; None where
    episodes are a member's own.
    """
    rule, given = _rule(manager), manager.population_sample_stream
    if isinstance(rule, League):
        return {each.stream: name for name, each in rule.learners.items()}
    if given is None:
        return {}
    return {given.stream_name: manager.population[0] if isinstance(rule, SelfPlay) else None}


def _rule(manager: PopulationManager) -> PopulationRule | None:
    """Return the rule of a population; None where it is wrong, as is said of the algorithm."""
    algorithm = manager.population_algorithm
    try:
        return population_rule(algorithm.type_, algorithm.args)
    except ConfigurationError:
        return None


def population_file(experiment: NamedExperiment, manager: PopulationManager) -> dict[str, Any]:
    """Return what the manager of a population reads."""
    trainers = {each.policy_name: each for each in reversed(experiment.config.trainers)}
    stream = manager.population_sample_stream
    return {
        "population_algorithm": manager.population_algorithm.model_dump(mode="json"),
        "population_sample_stream": "" if stream is None else stream.stream_name,
        "initial_hyperparams": {
            name: hyperparameters_of(experiment, trainers[name])
            for name in (manager.population if copies(manager) else ())
        },
    }


def server_options(experiment: NamedExperiment, policy_name: str) -> dict[str, Any]:
    """Return options of a policy's parameter server that it has as a member of a population.

    The first version of a policy in PSRO is the one that the training begins with.
    """
    managers = experiment.config.population_manager
    if not any(
        policy_name in each.population and each.population_algorithm.type_ == "psro"
        for each in managers
    ):
        return {}
    return {"--push-initial": True}


def learner_options(experiment: NamedExperiment, policy_name: str) -> dict[str, Any]:
    """Return options of a policy's learner that it has as a member of a population."""
    managers = experiment.config.population_manager
    if not any(policy_name in copying(each) for each in managers):
        return {}
    return {"--population-member": True, "--checkpoint-interval": CHECKPOINT_INTERVAL_S}
