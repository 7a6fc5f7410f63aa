"""Compares the spaces that an environment announces with those that an algorithm learns in."""

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from logging import Logger

import numpy as np

from relaax.algorithm_base import ConfigBase
from relaax.spaces import (
    Bounds,
    Space,
    actions_differ,
    bounds_differ,
    bounds_of,
    differ,
    is_nested,
    members,
    misfits,
    shape_of,
    written,
)
from relaax.steps import UNNAMED_AGENT, AgentName

#: A space is shown up to here: a client may send one as large as a frame.
_SHOWN_CHARACTERS = 500

#: Where keys are to be written.
_SECTION = "the algorithm section"

#: The keys of the sizes of spaces.
_SIZES = {"observations": "state_size", "actions": "action_size"}


#: The begin of the log's lines with doubts.
DOUBTFUL = "doubtful: "

#: Numbers of an observation that differ by so many times are doubtful: nine decades.
MOST_TIMES = 1e9

#: How many channels an image has.
_CHANNELS = (1, 3, 4)


class Doubt(IntEnum):
    """The doubtful facts of an environment's spaces, observations and rewards."""

    NOTHING_ANNOUNCED = 0
    BOUNDS_NOT_WRITTEN = 1
    BOUNDS_NOT_ANNOUNCED = 2
    WHOLE_NUMBERS = 3
    CHANNELS_FIRST = 4
    FRACTIONS_IN_BYTES = 5
    LARGE_PIXELS = 6
    SIZES = 7
    LARGE_REWARDS = 8
    REFUSED = 9
    NO_TRAINING = 10


@dataclass(frozen=True)
class AnnouncedSpaces:
    """The spaces of an environment, as far as they are known, its name for people, its agents."""

    environment: str
    observations: Space | None
    actions: Space | None
    agents: Sequence[AgentName] = (UNNAMED_AGENT,)

    def misfit(self, config: ConfigBase, section: str = _SECTION) -> str | None:
        """Return in words why no environment like this can be learnt in; None if it can be.

        ``section`` names the keys of ``config``.
        """
        for what, announced, wanted, are_different in (
            ("observations", self.observations, config.observation_space(), differ),
            ("actions", self.actions, config.action_space(), actions_differ),
        ):
            if announced is not None and wanted is not None and are_different(announced, wanted):
                name = f" of {self.environment}" if self.environment else ""
                return f"the {what}{name} {_misfit(announced, wanted, section, what)}"
        return config.misfit_of(self.agents) if isinstance(config, ConfigBase) else None

    def doubts(self, config: ConfigBase) -> Iterator[tuple[Doubt, str]]:
        """Yield the doubts that remain, in words."""
        wanted, name = config.action_space(), self.environment or "a client"
        if self.observations is not None and isinstance(config, ConfigBase):
            yield from _doubts_of_observations(name, self.observations, config)
        if self.actions is None:
            if wanted is not None:
                yield Doubt.NOTHING_ANNOUNCED, _assumed(name, config)
        elif wanted is not None and wanted.get("type") == "Box":
            yield from _doubts_of_bounds(name, self.actions, wanted)
            if _is_whole(self.actions) and not _is_whole(wanted):
                yield (
                    Doubt.WHOLE_NUMBERS,
                    f"{name} takes whole numbers: each number of an action is rounded",
                )


class Doubts:
    """Logs doubts about clients: each kind once, also of the processes forked later.

    ``relaax-train --check`` finds these lines in the log.
    """

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._said = mmap.mmap(-1, len(Doubt))

    def note(self, announced: AnnouncedSpaces, config: ConfigBase) -> None:
        """Log the doubts about a client, of the kinds that were not logged yet."""
        for kind, text in announced.doubts(config):
            self.say(kind, text)

    def say(self, kind: Doubt, text: str) -> None:
        """Log a doubt, unless one of its kind was logged."""
        if not self._said[kind]:
            self._said[kind] = 1
            self._log.warning("%s%s (said once, whatever other clients do)", DOUBTFUL, text)


def _misfit(announced: Space, wanted: Space, section: str, what: str) -> str:
    """Return the mistake in a space that an environment has announced."""
    asks = f"{_SIZES[what]} in {section} asks for {written(wanted)}"
    if by_name := "; ".join(misfits(announced, wanted))[:_SHOWN_CHARACTERS]:
        return f"do not fit: {by_name}; {asks}"
    are = f"are {written(announced)[:_SHOWN_CHARACTERS]}, {asks}"
    return are + _advice(announced, wanted, what)


def _advice(announced: Space, wanted: Space, what: str) -> str:
    """Return advice where it is not the sizes that differ."""
    if shape_of(announced) != shape_of(wanted):
        return ""
    if announced.get("start", 0) != wanted.get("start", 0):
        return (
            f"; {what} are counted from {wanted.get('start', 0)}: let the client convert them, and "
            "announce no other start"
        )
    try:
        if announced.get("type") != "Box" or not bounds_differ(announced, wanted):
            return ""
        if what == "actions":
            return f"; write {_keys(*bounds_of(announced))} there, or let the client convert them"
    except ValueError as error:
        return f"; {error}"
    return "; their bounds differ"


def _doubts_of_observations(
    name: str, announced: Space, config: ConfigBase
) -> Iterator[tuple[Doubt, str]]:
    """Yield the doubts about an observation, or about each that lies in a Dict or a Tuple."""
    if is_nested(announced):
        for key, inner in members(announced):
            yield from _doubts_of_observations(f"{key!r} of {name}", inner, config)
    elif announced.get("type") == "Box":
        yield from _doubts_of_images(name, announced)
        if not config.scales_states():
            yield from _doubts_of_sizes(name, announced)


def _doubts_of_images(name: str, announced: Space) -> Iterator[tuple[Doubt, str]]:
    shape = shape_of(announced) or ()
    if len(shape) == 3 and shape[0] in _CHANNELS and min(shape[1:]) > max(_CHANNELS):
        yield (
            Doubt.CHANNELS_FIRST,
            f"the observation of {name} has shape {list(shape)}: if that is an image with its "
            "channels first, transpose it, since height, width and channels are expected",
        )
    highest = _highest(announced)
    if len(shape) < 2 or highest is None:
        return
    if announced.get("dtype") == "uint8" and highest <= 1:
        yield (
            Doubt.FRACTIONS_IN_BYTES,
            f"the observation of {name} is of bytes up to {highest:g}, which are divided by 255: "
            "send them as float32, or multiply them by 255",
        )
    if announced.get("dtype") != "uint8" and highest > 128:
        yield large_pixels(name, highest, str(announced.get("dtype", "a type that is not said")))


def large_pixels(name: str, highest: float, dtype: str) -> tuple[Doubt, str]:
    """Return the doubt about images of numbers that no network is made for."""
    return (
        Doubt.LARGE_PIXELS,
        f"the observation of {name}, of {dtype:.20}, is of numbers up to {highest:g}, which stay "
        "as they are: send an image as uint8, which is divided by 255, or divide it",
    )


def _doubts_of_sizes(name: str, announced: Space) -> Iterator[tuple[Doubt, str]]:
    try:
        low, high = bounds_of(announced)
    except ValueError:  # of another shape: it is for people
        return
    yield from doubts_of_sizes(name, np.where(np.isfinite(high - low), high - low, 0.0))


def doubts_of_sizes(name: str, sizes: Bounds) -> Iterator[tuple[Doubt, str]]:
    """Yield a doubt where the numbers of an observation differ too much in their ``sizes``."""
    sizes = sizes[sizes > 0]
    if sizes.size and sizes.max() / sizes.min() >= MOST_TIMES:
        yield (
            Doubt.SIZES,
            f"numbers in the observation of {name} have sizes from {sizes.min():.3g} to "
            f"{sizes.max():.3g}: the small ones are not seen beside the large ones; write "
            "filter_states: true in the algorithm section, or scale them in the client",
        )


def _highest(announced: Space) -> float | None:
    """Return the largest number that is announced; None if that is not known."""
    try:
        highest = float(bounds_of(announced)[1].max())
    except ValueError:
        return None
    return highest if np.isfinite(highest) else None


def _doubts_of_bounds(name: str, announced: Space, wanted: Space) -> Iterator[tuple[Doubt, str]]:
    has, asked = bounds_of(announced), bounds_of(wanted)
    is_finite = [np.isfinite(bounds) for bounds in (*has, *asked)]
    if (is_finite[0] & ~is_finite[2] | is_finite[1] & ~is_finite[3]).any():
        yield (
            Doubt.BOUNDS_NOT_WRITTEN,
            f"{name} takes actions within bounds, and {_SECTION} names none: actions beyond them "
            "are cut off on their way, which learning does not see; write "
            f"{_keys(*has)} there",
        )
    if not {"low", "high"} & set(announced) and (is_finite[2] | is_finite[3]).any():
        yield (
            Doubt.BOUNDS_NOT_ANNOUNCED,
            f"{name} announces no bounds of its actions: they are taken to be {_keys(*asked)}; "
            'announce them as "low" and "high" of the action space',
        )


def _is_whole(box: Space) -> bool:
    """Return whether numbers of a Box are integers; False for a type that is not known."""
    try:
        return np.dtype(box.get("dtype", "float32")).kind in "biu"
    except (TypeError, ValueError):
        return False


def _assumed(name: str, config: ConfigBase) -> str:
    """Return the assumptions about a client that announces nothing of its actions."""
    return (
        f"{name} announces no action space, as no client of version 1 of the protocol does: it is "
        f"taken to act in {written(config.action_space())[:_SHOWN_CHARACTERS]} and to observe "
        f"{written(config.observation_space())[:_SHOWN_CHARACTERS]}; Client(..., action_space=...) "
        "announces it"
    )


def _keys(low: Bounds, high: Bounds) -> str:
    """Return bounds as they are written in YAML."""
    named = (("action_low", low), ("action_high", high))
    keys = [f"{key}: {_in_yaml(bound)}" for key, bound in named if np.isfinite(bound).any()]
    return " and ".join(keys)[:_SHOWN_CHARACTERS]


def _in_yaml(bound: Bounds) -> str:
    """Return one number where all are the same, else lists of them."""
    texts = np.vectorize(lambda number: f"{number:.7g}".replace("inf", ".inf"))(bound)
    if np.unique(texts).size == 1:
        return str(texts.flat[0])
    return str(texts.tolist()).replace("'", "")
