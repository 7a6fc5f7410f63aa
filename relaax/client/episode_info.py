"""An environment's own numbers of an episode: ``info["episode_info"]`` of its last step."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relaax.telemetry.episode_numbers import EPISODE_INFO, MOST_NUMBERS, mistake_in_name
from relaax.telemetry.metrics import STAGE, Metrics

#: The name of these numbers in an ``info``.
KEY = EPISODE_INFO.rstrip("/")


class EpisodeInfoReader:
    """Reads the numbers of infos. Those that cannot be used are left out.

    ``doubt`` is called once for each of their keys.
    """

    def __init__(self, doubt: Callable[[str], object] = lambda message: None) -> None:
        self._doubt = doubt
        self._doubted: set[object] = set()

    def of(self, info: Mapping[str, Any]) -> dict[str, float]:
        """Return the numbers in an ``info`` by name; a bool is 0 or 1."""
        found = info.get(KEY)
        return {} if found is None else self._usable(found)

    def of_environment(self, infos: Mapping[str, Any], index: int) -> dict[str, float]:
        """Return the numbers of one environment in the infos of a vector environment.

        Gymnasium gathers arrays [N] by name, and marks with a bool [N] whose they are.
        """
        found = infos.get(KEY)
        if not isinstance(found, Mapping):
            return {} if found is None or found[index] is None else self._usable(found[index])
        everyone = [True] * (index + 1)
        own = {
            name: values[index]
            for name, values in found.items()
            if not name.startswith("_") and found.get(f"_{name}", everyone)[index]
        }
        return self._usable(own)

    def _usable(self, found: Any) -> dict[str, float]:
        if not isinstance(found, Mapping):
            self._say("", f"info['{KEY}'] is no dict of numbers by name, but {found!r:.60}")
            return {}
        numbers: dict[str, float] = {}
        for name, value in found.items():
            number = as_number(value)
            mistake = mistake_in_name(name)
            if not mistake and (number is None or not math.isfinite(number)):
                mistake = f"{value!r:.60} is no finite number"
            if not mistake and name != STAGE and len(numbers) >= MOST_NUMBERS:
                mistake = f"an episode has {MOST_NUMBERS} numbers at most"
            if mistake:
                self._say(name, f"info['{KEY}'][{name!r:.80}] is left out: {mistake}")
            elif number is not None:
                numbers[name] = number
        return numbers

    def _say(self, key: object, message: str) -> None:
        if key not in self._doubted:
            self._doubted.add(key)
            self._doubt(message)


def as_number(value: Any) -> float | None:
    """Return a number, also one in an array of one element; None for anything else."""
    if isinstance(value, str | bytes) or value is None:
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "biuf" else None


def with_floats(info: dict[str, Any]) -> dict[str, Any]:
    """Return an ``info`` whose numbers of an episode are floats.

    Gymnasium gathers those of several environments in an array of the first one's type.
    """
    found = info.get(KEY)
    if not isinstance(found, Mapping):
        return info
    numbers = {name: as_number(value) for name, value in found.items()}
    known = {name: number for name, number in numbers.items() if number is not None}
    return {**info, KEY: {**found, **known}}


def send_numbers(metrics: Metrics, numbers: Mapping[str, float], environment: int = 0) -> None:
    """Send the numbers of the episode that goes on in an environment, before its last step."""
    for name, number in numbers.items():
        metrics.scalar(EPISODE_INFO + name, number, environment)
