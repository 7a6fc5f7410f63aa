"""What processes use: how often that is looked at, and what must hold of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from soak_trends import Trend

#: So many descriptors more are noise: connections that end, and files that are being written.
DESCRIPTORS_OF_NOISE = 8

#: Of a check that has measured nothing: it does not hold.
_TOO_SHORT = "too short to say"


@dataclass(frozen=True)
class Check:
    """Something that must hold."""

    name: str
    holds: bool
    figures: str


@dataclass(frozen=True)
class Sampling:
    """How often memory and descriptors are looked at, and how long after a start they count."""

    every_s: float
    settled_s: float

    @classmethod
    def of(cls, seconds: float) -> "Sampling":
        """Return that of a soak of so many seconds: a short one has to learn much in little."""
        return cls(min(max(seconds / 60, 1.0), 5.0), min(max(seconds / 6, 10.0), 30.0))


def memory_check(found: Sequence[Trend]) -> Check:
    """Return whether memory is flat; it does not hold where nothing was measured."""
    figures = ", ".join(
        f"{each.name} {each.mib:.0f} MiB {each.mib_an_hour:+.1f} ± {each.error:.1f} MiB an hour"
        f" in {each.minutes:.0f} min"
        for each in found
    )
    holds = bool(found) and all(each.is_flat for each in found)
    return Check("memory is flat", holds, figures or _TOO_SHORT)


def early_and_late(counts: Sequence[int]) -> tuple[int, int]:
    """Return the least of both halves, or the medians: what has grown less.

    While a server is cut off it has few descriptors, and many when others' clients come to it. What
    it keeps makes both grow.
    """
    half = len(counts) // 2
    early, late = counts[:half], counts[half:]
    found = [(min(early), min(late)), (median_low(early), median_low(late))]
    return min(found, key=lambda pair: pair[1] - pair[0])


def descriptor_check(found: Sequence[tuple[str, int, int]]) -> Check:
    """Return whether none is kept, by how many there were early and late."""
    holds = bool(found) and all(late <= early + DESCRIPTORS_OF_NOISE for _, early, late in found)
    figures = ", ".join(f"{name} {early} then {late}" for name, early, late in found)
    return Check("no descriptor is kept", holds, figures or _TOO_SHORT)
