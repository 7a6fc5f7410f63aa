"""Makes the manager of each algorithm; the process knows them by the types of their rules."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from relaax.checkpoints import BlobStore
from relaax.configuration import LearnerConfiguration
from relaax.configuration.algorithm_loader import load_algorithm, make_config
from relaax.configuration.population_rules import (
    League,
    PopulationFile,
    Psro,
    SelfPlay,
    VanillaPbt,
    merged,
)
from relaax.errors import ConfigurationError
from relaax.parameters.stub import Bridge
from relaax.populations.hyperparameters import require_explorable
from relaax.populations.league import Ladder
from relaax.populations.league_manager import LeagueManager
from relaax.populations.members import MemberPlace, Members
from relaax.populations.psro_manager import PsroManager
from relaax.populations.record import PopulationRecord
from relaax.populations.stub import MemberStub
from relaax.populations.vanilla_pbt import VanillaPopulation
from relaax.populations.vanilla_pbt_manager import VanillaPbtManager
from relaax.telemetry.metrics import Metrics


class Manager(Protocol):
    """The manager of a population."""

    #: How often ``advance`` is called.
    interval_s: float

    def advance(self) -> None:
        """Look at the members, and do what is to be done."""

    def write(self) -> None:
        """Write tables and plots; called now and then, and at the end."""

    def numbers(self) -> Mapping[str, float]:
        """Return what people want to know of the population, by name."""


@dataclass(frozen=True)
class ManagerParts:
    """What a manager is made of."""

    rules: PopulationFile
    #: By member.
    configurations: Mapping[str, LearnerConfiguration]
    servers: Mapping[str, str]
    stubs: Mapping[str, MemberStub]
    store: BlobStore
    resources: ExitStack

    def metrics(self) -> dict[str, Metrics]:
        """Return the metrics of each member's training."""
        opened = {name: closing(Bridge(server)) for name, server in self.servers.items()}
        return {name: self.resources.enter_context(each).metrics() for name, each in opened.items()}


def _vanilla_pbt(rule: VanillaPbt, parts: ManagerParts) -> Manager:
    given = parts.rules.initial_hyperparams
    hyperparameters = {name: given.get(name, {}) for name in parts.stubs}
    places = {name: _copied(parts.configurations[name], stub) for name, stub in parts.stubs.items()}
    for name, place in places.items():
        place.require_allowed(hyperparameters[name])
        require_explorable(hyperparameters[name], rule.explore_configs, place.require_allowed)
    record = PopulationRecord(parts.store, list(places))
    members = Members(places, parts.rules.population_sample_stream)
    return VanillaPbtManager(VanillaPopulation(rule, hyperparameters), members, record)


def _self_play(rule: SelfPlay, parts: ManagerParts) -> Manager:
    (name,) = parts.stubs
    learners = {name: rule.learner(parts.rules.population_sample_stream)}
    return _league_of(Ladder(rule, learners), parts, "self_play")


def _league(rule: League, parts: ManagerParts) -> Manager:
    return _league_of(Ladder(rule, rule.learners), parts, "league")


def _league_of(ladder: Ladder, parts: ManagerParts, name: str) -> Manager:
    places = {name: MemberPlace(stub) for name, stub in parts.stubs.items()}
    for each in ladder.learners.values():
        if each.exploits is not None:
            configuration = parts.configurations[each.exploits]
            places[each.exploits] = _copied(configuration, parts.stubs[each.exploits])
    games = {name: Members(places, each.stream) for name, each in ladder.learners.items()}
    return LeagueManager(ladder, games, parts.metrics(), parts.store, name)


def _psro(rule: Psro, parts: ManagerParts) -> Manager:
    places = {name: MemberPlace(stub) for name, stub in parts.stubs.items()}
    return PsroManager(rule, Members(places, parts.rules.population_sample_stream), parts.store)


#: By the type of a rule.
MANAGERS: Mapping[type, Callable[[Any, ManagerParts], Manager]] = {
    VanillaPbt: _vanilla_pbt,
    SelfPlay: _self_play,
    League: _league,
    Psro: _psro,
}


def _copied(configuration: LearnerConfiguration, stub: MemberStub) -> MemberPlace:
    """Return the place of a member whose parameters others take."""
    options = configuration.options
    if options.checkpoint_dir is None:
        raise ConfigurationError(
            f"{configuration.algorithm.source}: a member of a population needs --checkpoint-dir in "
            "the section relaax-learner: other members take its parameters from there"
        )
    return MemberPlace(stub, str(options.checkpoint_dir), _checker(configuration))


def _checker(configuration: LearnerConfiguration) -> Callable[[Mapping[str, Any]], object]:
    section = configuration.algorithm
    algorithm = load_algorithm(section.directory)

    def check(hyperparameters: Mapping[str, Any]) -> None:
        parameters = merged(section.parameters, hyperparameters)
        make_config(algorithm, replace(section, parameters=parameters))

    return check
