"""The configuration of a population's manager; seed 002, "Population-Based Training"."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeGuard

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from relaax.configuration.mistakes import explain
from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError, did_you_mean_one_of

#: The keys that lead to a hyperparameter: one, or several of which each lies in the one before.
Keys = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    Field(min_length=1),
]


def merged(keys: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``keys`` with those of ``over`` in their place, also of sections that both have."""
    found = dict(keys)
    for key, value in over.items():
        inner = found.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        found[key] = merged(inner, value) if both else copy.deepcopy(value)  # type: ignore[arg-type]
    return found


#: The tag of the versions that a manager of PSRO lets play one another.
PSRO_TAG = "psro"


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a hyperparameter can be multiplied."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def value_at(keys: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return the value that keys lead to; ConfigurationError where there is none."""
    value: Any = keys
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            known = list(value) if isinstance(value, Mapping) else []
            raise ConfigurationError(
                f"the hyperparameter {'.'.join(path)} has no value to begin with: write it into "
                "initial_hyperparams, or into the trainer's args" + did_you_mean_one_of(key, known)
            )
        value = value[key]
    return value


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Perturb(_Rule):
    """Multiply a hyperparameter by one of the factors."""

    method: Literal["perturb"]
    keys: Keys
    factors: Annotated[tuple[PositiveFloat, ...], Field(min_length=1)]
    min_value: FiniteFloat | None = None
    max_value: FiniteFloat | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if None not in (self.min_value, self.max_value) and self.min_value > self.max_value:  # type: ignore[operator]
            raise ValueError(f"min_value {self.min_value} is above max_value {self.max_value}")
        return self


class Resample(_Rule):
    """Draw a hyperparameter anew: of ``values``, or between both ends of ``value_range``."""

    method: Literal["resample"]
    keys: Keys
    distribution: Literal["categorical", "uniform", "log_uniform"]
    values: tuple[Any, ...] | None = None
    #: In either order: SRL's own experiments have the larger one first.
    value_range: tuple[FiniteFloat, FiniteFloat] | None = None

    @model_validator(mode="after")
    def _has_what_it_draws_from(self) -> Self:
        needs, other = "values", "value_range"
        if self.distribution != "categorical":
            needs, other = other, needs
        if not getattr(self, needs):
            raise ValueError(f"the distribution {self.distribution} needs {needs}")
        if getattr(self, other) is not None:
            raise ValueError(f"{other}: no effect with the distribution {self.distribution}")
        if self.distribution == "log_uniform" and min(self.value_range or ()) <= 0:
            raise ValueError("value_range: the distribution log_uniform needs numbers above 0")
        return self


class PopulationRule(_Rule):
    """The ``args`` of a population algorithm."""

    #: So many members at least, and at most; None: any number.
    members: ClassVar[tuple[int, int | None]]
    #: Whether members take parameters and hyperparameters of one another.
    copies: ClassVar[bool] = False
    #: Whether episodes of all members are reported to one population_sample_stream.
    has_one_stream: ClassVar[bool] = True


class VanillaPbt(PopulationRule):
    """The ``args`` of ``vanilla_pbt``."""

    members = (2, None)
    copies = True

    #: A member is ready when its newest evaluated version is so many updates newer than when it was
    #: ready last.
    ready_interval: PositiveInt
    #: The worst of the members take the parameters of the best, so large a part of all.
    truncation_ratio: Annotated[float, Field(gt=0, le=0.5)]
    explore_configs: tuple[Annotated[Perturb | Resample, Field(discriminator="method")], ...] = ()
    #: The names of the members, as the manager itself has them.
    population: tuple[str, ...] | None = None
    #: A member's return is the mean of so many of its last evaluated episodes.
    episodes: PositiveInt = 10
    seed: NonNegativeInt | None = None

    def truncated(self, members: int) -> int:
        """Return how many of the members are the worst; ConfigurationError for none."""
        found = int(self.truncation_ratio * members)
        if not found:
            raise ConfigurationError(
                f"truncation_ratio: {self.truncation_ratio:g} of {members} members is less than "
                "one: no member would ever take the parameters of another"
            )
        return found


class Weighting(_Rule):
    """How often which past version is the opponent of a learner."""

    #: With the win rate p of the newest policy against a version: (1 - p) ** power, p * (1 - p), or
    #: 1 for each.
    weighting: Literal["hard", "variance", "uniform"] = "hard"
    power: PositiveFloat = 2.0

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if self.weighting != "hard" and "power" in self.model_fields_set:
            raise ValueError(f"power: no effect with the weighting {self.weighting}")
        return self


class Ratings(_Rule):
    """How games count in win rates and ratings."""

    #: A game has half of its weight in the win rate after so many later games of the version.
    half_life_games: PositiveFloat = 50.0
    #: So many games, half of them won, are thought to have been before the first one.
    prior_games: PositiveFloat = 4.0
    #: The rating changes by so much at most with a game.
    elo_step: PositiveFloat = 16.0


class Learner(Weighting):
    """A policy of a league as a learner."""

    #: Its opponents report their games to this stream.
    stream: Annotated[str, Field(min_length=1)]
    #: The policy against whose newest version it plays, and with whose parameters it begins anew.
    exploits: str | None = None
    #: It begins anew when it wins more of its recent games against this version.
    reset_win_rate: Annotated[float, Field(gt=0, lt=1)] = 0.7
    #: It also begins anew after so many updates; None: it does not.
    reset_updates: PositiveInt | None = None

    @model_validator(mode="after")
    def _begins_anew(self) -> Self:
        for key in ("reset_win_rate", "reset_updates"):
            if self.exploits is None and key in self.model_fields_set:
                raise ValueError(f"{key}: no effect without exploits, the policy that is exploited")
        return self


class SelfPlay(Weighting, Ratings, PopulationRule):
    """The ``args`` of ``self_play``: the one policy learns against its own past versions."""

    members = (1, 1)

    def learner(self, stream: str) -> Learner:
        """Return the policy as the one learner of a league; its games go to the stream."""
        given = self.model_dump(include={"weighting", "power"}, exclude_unset=True)
        return Learner(stream=stream, **given)


class League(Ratings, PopulationRule):
    """The ``args`` of ``league``: policies learn against past versions of one another."""

    members = (2, None)
    has_one_stream = False

    #: By policy.
    learners: dict[str, Learner]

    @model_validator(mode="after")
    def _has_a_stream_for_each(self) -> Self:
        first: dict[str, str] = {}
        for name, each in self.learners.items():
            if first.setdefault(each.stream, name) != name:
                raise ValueError(
                    f"learners: {first[each.stream]} and {name} have the stream {each.stream!r}: "
                    "each needs one of its own, so that it is known whose games they are"
                )
        return self

    @model_validator(mode="after")
    def _exploits_others(self) -> Self:
        # The win rate after many games, all of them won.
        games = 1 / (1 - 0.5 ** (1 / self.half_life_games))
        most = (games + self.prior_games / 2) / (games + self.prior_games)
        for name, each in self.learners.items():
            if each.exploits is None:
                continue
            if each.exploits not in self.learners or each.exploits == name:
                others = ", ".join(sorted(self.learners.keys() - {name}))
                raise ValueError(
                    f"learners: {name}: exploits: {each.exploits!r} is no other learner; there "
                    f"are: {others}"
                )
            if each.reset_win_rate >= most:
                raise ValueError(
                    f"learners: {name}: reset_win_rate: {each.reset_win_rate:g} is never exceeded: "
                    f"with these half_life_games and prior_games a win rate is below {most:.3f}"
                )
        return self

    @property
    def exploited(self) -> dict[str, str]:
        """Return the policy that each exploiter exploits, by the exploiter's name."""
        return {
            name: each.exploits for name, each in self.learners.items() if each.exploits is not None
        }


class Psro(PopulationRule):
    """The ``args`` of ``psro``: policy-space response oracles."""

    members = (2, 2)

    #: Both populations get a version when both policies have so many updates against the mixtures.
    oracle_updates: PositiveInt
    meta_solver: Literal["nash", "uniform"] = "nash"
    #: Each pair of versions plays so many games.
    games_per_cell: PositiveInt = 1


#: The keys of ``population_algorithm`` in the file of a population, by its ``type_``.
ALGORITHMS: Mapping[str, type[PopulationRule]] = {
    "vanilla_pbt": VanillaPbt,
    "self_play": SelfPlay,
    "league": League,
    "psro": Psro,
}


def population_rule(type_: str, args: Mapping[str, Any]) -> PopulationRule:
    """Return the rule of a population; ConfigurationError for a type or a key that is unknown."""
    if type_ not in ALGORITHMS:
        raise ConfigurationError(
            f"no population algorithm has the type {type_!r}; there are {', '.join(ALGORITHMS)}"
            + did_you_mean_one_of(type_, list(ALGORITHMS))
        )
    try:
        return ALGORITHMS[type_].model_validate(args)
    except ValidationError as error:
        raise ConfigurationError(
            "; ".join(f"{type_}: {each}" for each in explain(error))
        ) from error


def stream_mistake(type_: str, rule: PopulationRule, is_given: bool) -> str | None:
    """Return why a population cannot have a population_sample_stream, or needs one."""
    if rule.has_one_stream and not is_given:
        return f"population_sample_stream: {type_} needs the stream that its episodes go to"
    if is_given and not rule.has_one_stream:
        return (
            f"population_sample_stream: no effect with {type_}, whose learners each have a stream "
            "of their own"
        )
    return None


def mistakes_of_members(
    type_: str, rule: PopulationRule, members: Sequence[str], initial_hyperparams: Iterable[str]
) -> Iterator[str]:
    """Yield why a population cannot have these members, and hyperparameters of these names."""
    least, most = rule.members
    count = len(members)
    if count < least or (most is not None and count > most):
        wanted = f"{least} policies or more" if most is None else f"{least} policies"
        wanted = "1 policy" if most == 1 else wanted
        yield f"population: {type_} has {wanted}, and here are {count}"
    for name in initial_hyperparams:
        if not rule.copies:
            yield f"initial_hyperparams: no effect with {type_}"
        elif name not in members:
            meant = did_you_mean_one_of(name, members)
            yield f"initial_hyperparams: {name!r} is no member of the population{meant}"
    args = "population_algorithm: args"
    if isinstance(rule, VanillaPbt):
        if rule.population not in (None, tuple(members)):
            yield f"{args}: population: is another one than the manager's"
        try:
            rule.truncated(count)
        except ConfigurationError as error:
            yield f"{args}: {error}"
    if isinstance(rule, League):
        for name in members:
            if name not in rule.learners:
                yield (
                    f"{args}: learners: {name!r} is missing: name the stream that its games are "
                    "reported to"
                )
        for name in rule.learners:
            if name not in members:
                meant = did_you_mean_one_of(name, members)
                yield f"{args}: learners: {name!r} is no member of the population{meant}"


class PopulationAlgorithm(_Rule):
    """A population algorithm by its name, and its arguments."""

    type_: str
    args: dict[str, Any] = Field(default_factory=dict)


class PopulationFile(_Rule):
    """The rules of a population's manager, as YAML."""

    population_algorithm: PopulationAlgorithm
    #: The evaluated episodes of this stream count; "" where the rule names others.
    population_sample_stream: str = ""
    #: Keys of the algorithm's section of each member, in the place of those of its configuration.
    initial_hyperparams: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the content of a file; ConfigurationError with the path of a wrong key."""
        try:
            return cls.model_validate(read_yaml(path))
        except ValidationError as error:
            raise ConfigurationError("; ".join(f"{path}: {e}" for e in explain(error))) from error

    def rule(self) -> PopulationRule:
        """Return the rule; ConfigurationError for a type or a key that is unknown.

        The same for a stream that is missing, or has no effect.
        """
        type_ = self.population_algorithm.type_
        rule = population_rule(type_, self.population_algorithm.args)
        mistake = stream_mistake(type_, rule, bool(self.population_sample_stream))
        if mistake is not None:
            raise ConfigurationError(mistake)
        return rule

    def require_members(self, members: Sequence[str]) -> None:
        """Raise ConfigurationError where the population cannot have these members."""
        type_, names = self.population_algorithm.type_, self.initial_hyperparams
        mistakes = list(mistakes_of_members(type_, self.rule(), members, names))
        if mistakes:
            raise ConfigurationError("; ".join(mistakes))
