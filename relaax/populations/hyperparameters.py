"""Explores hyperparameters: seed 002, "Vanilla PBT"; Jaderberg et al. 2017, section 4.1."""

import math
import random
from collections.abc import Iterable, Mapping
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
    number.
    """
    found = merged({}, hyperparameters)
    for rule in rules:
        before = value_at(found, rule.keys)
        if isinstance(rule, Perturb):
            after = _perturbed(before, rule, random_numbers)
        else:
            after = _resampled(rule, random_numbers)
        holder = value_at(found, rule.keys[:-1])
        holder[rule.keys[-1]] = after
    return found


def _perturbed(value: Any, rule: Perturb, random_numbers: random.Random) -> float | int:
    if not is_number(value):
        raise ConfigurationError(
            f"the hyperparameter {'.'.join(rule.keys)} is {value!r}: perturb multiplies numbers"
        )
    found = value * random_numbers.choice(rule.factors)
    if rule.min_value is not None:
        found = max(found, rule.min_value)
    if rule.max_value is not None:
        found = min(found, rule.max_value)
    return round(found) if isinstance(value, int) else found


def _resampled(rule: Resample, random_numbers: random.Random) -> Any:
    if rule.value_range is None:
        return random_numbers.choice(rule.values or ())
    low, high = sorted(rule.value_range)
    if rule.distribution == "uniform":
        return random_numbers.uniform(low, high)
    drawn = math.exp(random_numbers.uniform(math.log(low), math.log(high)))
    return min(max(drawn, low), high)
