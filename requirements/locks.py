"""Read the lock files that ``make lock`` writes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

FOLDER = Path(__file__).parent

_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Pin:
    """One version of a package, as a lock file has it."""

    name: NormalizedName
    version: str
    #: Where it is installed; None everywhere.
    marker: str | None
    #: Of the files that this version may be installed from.
    sha256: tuple[str, ...]


def lock_files() -> list[str]:
    """Return the names of all lock files, as paths below this folder."""
    return sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.txt"))


@cache
def read(name: str) -> tuple[Pin, ...]:
    """Return all pins of a lock file; ValueError for a line that is none."""
    text = (FOLDER / name).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return tuple(_pin(line) for line in lines)


def chosen(pins: Iterable[Pin], environment: Mapping[str, str]) -> dict[NormalizedName, Pin]:
    """Return the pins that are installed where markers have these values, by name."""
    pins = tuple(pins)
    markers = {pin.marker for pin in pins if pin.marker is not None}
    hold = {marker: Marker(marker).evaluate(dict(environment)) for marker in markers}
    return {pin.name: pin for pin in pins if pin.marker is None or hold[pin.marker]}


def linux(python: str) -> dict[str, str]:
    """Return the values of markers with a version of Python, such as 3.11, on a usual machine."""
    return {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
    }


def _pin(line: str) -> Pin:
    requirement = Requirement(_HASH.sub("", line).strip())
    (specifier,) = requirement.specifier
    hashes = tuple(_HASH.findall(line))
    if specifier.operator != "==" or not hashes:
        raise ValueError(f"this names no version, or no hash of it: {line}")
    marker = None if requirement.marker is None else str(requirement.marker)
    return Pin(canonicalize_name(requirement.name), specifier.version, marker, hashes)
