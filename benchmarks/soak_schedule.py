"""Which process fails next, how, and for how long: drawn of a seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from soak_links import Cut


class Blow(Enum):
    """What a process may suffer besides a cut of its links."""

    KILL = "killed"
    STOP = "stopped"


@dataclass(frozen=True)
class Fault:
    """What happens to the ``number``-th process of a role, drawn among all numbers."""

    role: str
    number: int
    how: Blow | Cut
    #: How long a stop or a cut lasts, and the quiet after the training has recovered.
    seconds: float
    pause_s: float


#: What each role may suffer, kills more often than the rest. A worker has no link of its own.
_ALL = (Blow.KILL, Blow.KILL, Blow.STOP, *Cut)
MAY_SUFFER: dict[str, tuple[Blow | Cut, ...]] = {
    "client": _ALL,
    "worker": (Blow.KILL, Blow.STOP),
    "actor": _ALL,
    "RLX server": _ALL,
    "shard": _ALL,
    "replay": _ALL,
    "learner": _ALL,
    "S3 server": _ALL,
    "HAProxy": _ALL,
}


def schedule(seed: int) -> Iterator[Fault]:
    """Yield faults without end: each role once, in an order that is drawn, and again."""
    numbers = random.Random(seed)  # noqa: S311 - no secret
    while True:
        roles = list(MAY_SUFFER)
        numbers.shuffle(roles)
        for role in roles:
            yield Fault(
                role,
                numbers.randrange(1_000_000),
                numbers.choice(MAY_SUFFER[role]),
                numbers.uniform(1.0, 6.0),
                numbers.uniform(0.5, 3.0),
            )
