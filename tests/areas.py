"""Which tests of the second tier a change asks for: ``areas.toml`` has the table.

As a program, it prints the names of the areas that the last commit touches, for pytest's option
``--areas``; ``all`` where it is not known what that commit changed.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
TABLE = Path(__file__).with_suffix(".toml")
ALL, NONE = "all", "none"


@dataclass(frozen=True)
class Area:
    """Paths of the product, and the tests that a change of one of them asks for."""

    paths: tuple[str, ...]
    tests: tuple[str, ...]

    def has_test(self, path: str) -> bool:
        """Return whether a file is one of the area's tests."""
        return _matches(path, self.tests)

    def is_touched_by(self, changed: Iterable[str]) -> bool:
        """Return whether one of the changed files is of this area, or is a test of it."""
        return any(_matches(path, (*self.paths, *self.tests)) for path in changed)


def areas() -> dict[str, Area]:
    """Return the table, by the names of areas; each has the shared paths, too."""
    table = tomllib.loads(TABLE.read_text())
    shared = table.pop("shared")
    return {
        name: Area((*shared, *row["paths"]), tuple(row["tests"])) for name, row in table.items()
    }


def touched(table: Mapping[str, Area], changed: Iterable[str] | None) -> list[str]:
    """Return the areas that a change touches; all of them where ``changed`` is not known."""
    known = None if changed is None else list(changed)
    return [name for name, area in table.items() if known is None or area.is_touched_by(known)]


def chosen(table: Mapping[str, Area], names: str) -> set[str]:
    """Return the areas that an option names: some, ``all`` or ``none``; ValueError for others."""
    wanted = set(names.replace(",", " ").split())
    if wanted <= {ALL}:
        return set(table)
    if unknown := wanted - {*table, NONE}:
        raise ValueError(f"no area is called {unknown.pop()}: there are {', '.join(table)}")
    return wanted - {NONE}


def changed_since(commit: str, repository: Path = REPOSITORY) -> list[str] | None:
    """Return the files that differ from a commit; None where that commit is not known."""
    command = ["git", "diff", "--name-only", "--no-renames", "-z", commit, "--"]
    listed = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    return listed.stdout.split("\0")[:-1] if listed.returncode == 0 else None


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(_expression(pattern).fullmatch(path) for pattern in patterns)


def _expression(pattern: str) -> re.Pattern[str]:
    parts = {"**": ".*", "*": "[^/]*"}
    return re.compile(
        "".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*)", pattern))
    )


def main(parent: str = "HEAD^") -> None:
    """Print the areas that the change since ``parent`` touches, or ``none``."""
    print(" ".join(touched(areas(), changed_since(parent))) or NONE)


if __name__ == "__main__":
    main(*sys.argv[1:])
