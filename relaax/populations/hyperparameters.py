"""Explores hyperparameters: seed 002, "Vanilla PBT"; Jaderberg et al. 2017, section 4.1."""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from relaax.configuration.population_rules import Perturb, Resample, is_number, merged, value_at
from relaax.errors import ConfigurationError


def explored(
    hyperparameters: Mapping[str, Any],
    rules: Iterable[Perturb | Resample],
    random_numbers: random.Random,
) -> dict[str, Any]:
    """Return hyperparameters that each rule has changed, one after the other.

    ConfigurationError for a key without a value, and for one that is to be multiplied and is no
    number, or a whole number without another one within the limits.
    """
    found = merged({}, hyperparameters)
    for rule in rules:
        before = value_at(found, rule.keys)
        if isinstance(rule, Perturb):
            after = _perturbed(before, random_numbers.choice(rule.factors), rule)
        else:
            after = _resampled(rule, random_numbers)
        _set(found, rule.keys, after)
    return found


def require_explorable(
    hyperparameters: Mapping[str, Any],
    rules: Sequence[Perturb | Resample],
    require_allowed: Callable[[Mapping[str, Any]], object],
) -> None:
    """Raise ConfigurationError for a rule that leads to values which an algorithm does not allow.

    ``require_allowed`` raises it for hyperparameters. It is asked about each rule alone: each
    factor, each of the values, both ends of a range and a number between them.
    """
    for number, rule in enumerate(rules):
        before = value_at(hyperparameters, rule.keys)
        if isinstance(rule, Perturb):
            values = [_perturbed(before, factor, rule) for factor in rule.factors]
        elif rule.value_range is None:
            values = list(rule.values or ())
        else:
            low, high = rule.value_range
            # The number between them is hardly ever whole, as what is drawn is.
            values = [low, high, low + (high - low) / math.e]
        for value in values:
            found = merged({}, hyperparameters)
            _set(found, rule.keys, value)
            try:
                require_allowed(found)
            except ConfigurationError as error:
                raise ConfigurationError(
                    f"explore_configs: {number}: {'.'.join(rule.keys)} may become {value!r}: "
                    f"{error}"
                ) from error


def _set(hyperparameters: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    value_at(hyperparameters, keys[:-1])[keys[-1]] = value


def _perturbed(value: Any, factor: float, rule: Perturb) -> float | int:
    if not is_number(value):
        raise ConfigurationError(
            f"the hyperparameter {'.'.join(rule.keys)} is {value!r}: perturb multiplies numbers"
        )
    if isinstance(value, int):
        return _perturbed_whole(value, factor, rule)
    found = value * factor
    if rule.min_value is not None:
        found = max(found, rule.min_value)
    if rule.max_value is not None:
        found = min(found, rule.max_value)
    return found


def _perturbed_whole(value: int, factor: float, rule: Perturb) -> int:
    """Return a whole number that differs by 1 at least, but for limits.

    It does not become 0, which no factor would change.
    """
    found = round(value * factor)
    if found == value:
        found += _sign(value * factor - value)
    found = found or _sign(value)
    low, high = rule.min_value, rule.max_value
    if low is not None:
        found = max(found, math.ceil(low))
    if high is not None:
        found = min(found, math.floor(high))
    if low is not None and found < low:
        raise ConfigurationError(
            f"the hyperparameter {'.'.join(rule.keys)} is a whole number, and there is none from "
            f"min_value {low:g} to max_value {high:g}"
        )
    return found


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _resampled(rule: Resample, random_numbers: random.Random) -> Any:
    if rule.value_range is None:
        return random_numbers.choice(rule.values or ())
    low, high = sorted(rule.value_range)
    if rule.distribution == "uniform":
        return random_numbers.uniform(low, high)
    drawn = math.exp(random_numbers.uniform(math.log(low), math.log(high)))
    return min(max(drawn, low), high)
