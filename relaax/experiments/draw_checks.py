"""Names of numbers by which versions of a population's members are drawn: ``$draw`` in queries."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from relaax.configuration.population_rules import League, PopulationRule, Psro, SelfPlay
from relaax.experiments.stream_checks import unknown_name
from relaax.experiments.version_checks import pulling
from relaax.experiments.workers import PopulationManager
from relaax.experiments.written import NamedExperiment
from relaax.processes.identifiers import Identifier, identifier_of, text_of

#: How names of weights begin that managers set.
_WEIGHTS = ("pfsp", "psro")


def drawn_by(manager: PopulationManager, experiment: NamedExperiment) -> dict[str, str]:
    """Return the fields by which versions of the members are drawn, each with its first place."""
    found: dict[str, str] = {}
    for place, user in pulling(experiment):
        field = _field(user.policy_identifier)
        if field is not None and user.policy_name in manager.population:
            found.setdefault(field, place)
    return found


def mistakes_of_draws(
    rule: PopulationRule, manager: PopulationManager, experiment: NamedExperiment
) -> Iterator[str]:
    """Yield fields that look like a number of the manager, and are none.

    Environments report numbers of their own, so that other fields are allowed.
    """
    known = dict.fromkeys(_set_by(rule, manager))
    for field, place in drawn_by(manager, experiment).items():
        if known and field not in known and _is_meant_for_weight(field):
            owner = f"manager of {manager.population_algorithm.type_}"
            unknown = unknown_name("number", field, known, owner)
            yield f"{place}: policy_identifier: {unknown}"


def _field(identifier: Identifier) -> str | None:
    """Return what the stage ``$draw`` of a query has; None where there is no such stage."""
    query = identifier_of(text_of(identifier))
    if isinstance(query, int | str):
        return None
    stages = [query] if isinstance(query, Mapping) else query
    found = [str(each["$draw"]) for each in stages if isinstance(each, Mapping) and "$draw" in each]
    return found[0] if found else None


def _set_by(rule: PopulationRule, manager: PopulationManager) -> list[str]:
    """Return the fields that a manager sets."""
    if isinstance(rule, League):
        return ["md.elo", *(f"md.pfsp_{name}" for name in manager.population)]
    if isinstance(rule, SelfPlay):
        return ["md.elo", "md.pfsp"]
    return ["md.psro"] if isinstance(rule, Psro) else []


def _is_meant_for_weight(field: str) -> bool:
    """Return whether a field that no manager sets is a mistake.

    It is one without ``md.``, and where the name begins like those of managers, or almost.
    """
    name = field.removeprefix("md.")
    is_close = get_close_matches(name.partition("_")[0], _WEIGHTS, cutoff=0.75)
    return name == field or name.startswith((*_WEIGHTS, "elo_")) or bool(is_close)
