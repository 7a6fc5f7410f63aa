"""What does not fit together about curricula: evaluation managers and actors."""

from collections.abc import Iterator

from relaax.configuration.curriculum import Curriculum
from relaax.experiments.stream_checks import each_once, unknown_name
from relaax.experiments.workers import ActorWorker
from relaax.experiments.written import NamedExperiment


def mistakes_of_curricula(experiment: NamedExperiment) -> list[str]:
    """Return a sentence for each mistake."""
    return [*_managers(experiment), *each_once(experiment, _actor)]


def curriculum_of(actor: ActorWorker, experiment: NamedExperiment) -> str | None:
    """Return the policy whose curriculum says the stage of an actor; None where there is none."""
    policies = _policies(experiment)
    if actor.curriculum_config is not None:
        return policies.get(actor.curriculum_config.name)
    return next(iter(policies.values()), None)


def _policies(experiment: NamedExperiment) -> dict[str, str]:
    """Return the policy of each curriculum, by the curriculum's name."""
    return {
        manager.curriculum_config.name: manager.policy_name
        for manager in experiment.config.eval_managers
        if manager.curriculum_config is not None
    }


def _managers(experiment: NamedExperiment) -> Iterator[str]:
    names: set[str] = set()
    policies: set[str] = set()
    for number, manager in enumerate(experiment.config.eval_managers):
        curriculum = manager.curriculum_config
        if curriculum is None:
            continue
        place = f"eval_managers: {number}: curriculum_config"
        if not curriculum.conditions:
            yield f"{place}: conditions: are empty: say when a stage is over"
        if curriculum.name in names:
            yield f"{place}: name: another manager has the curriculum {curriculum.name!r}"
        elif manager.policy_name in policies:
            yield (
                f"{place}: another manager of the policy {manager.policy_name!r} has a curriculum: "
                "a policy has one"
            )
        names.add(curriculum.name)
        policies.add(manager.policy_name)


def _actor(actor: ActorWorker, experiment: NamedExperiment) -> Iterator[str]:
    policies, own = _policies(experiment), actor.curriculum_config
    if own is None:
        if len(policies) > 1:
            yield (
                f"curriculum_config: is missing: there are the curricula {', '.join(policies)}, "
                "and this says which one's stage the environments are reset with"
            )
        return
    if own.name not in policies:
        yield (
            "curriculum_config: "
            + unknown_name("curriculum", own.name, policies, "evaluation manager")
        )
        return
    wholes = [manager.curriculum_config for manager in experiment.config.eval_managers]
    if own not in wholes and own != Curriculum(type_=own.type_, name=own.name):
        yield (
            "curriculum_config: stages and conditions are those of the evaluation manager: leave "
            "them out here"
        )
