"""Numbers that environments give of their episodes, beside return and length: a win rate.

A client sends one as a metric, whose name is ``EPISODE_INFO`` with the number's name behind it, and
whose x is the number of the environment on its connection. It is of the episode that goes on there.
"""

import re
from collections.abc import Mapping

from relaax.telemetry.metrics import EPISODE_LENGTH, EPISODE_RETURN, STAGE

#: Before the name of such a number.
EPISODE_INFO = "episode_info/"

#: An episode has so many of them.
MOST_NUMBERS = 30

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,63}")


def environments_own(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers of an episode without that of its stage, which the service adds."""
    return {name: y for name, y in numbers.items() if name != STAGE}


def mistake_in_name(name: object) -> str:
    """Return in words why a number cannot have this name; "" if it can."""
    if name == STAGE:
        return ""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "a name has 1 to 64 letters, digits and _, and no _ first"
    if name in (EPISODE_RETURN, EPISODE_LENGTH):
        return "the service counts that itself"
    return ""
