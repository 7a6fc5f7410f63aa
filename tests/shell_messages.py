"""The messages of shell scripts: what they print as errors."""

import re
from collections.abc import Iterator
from pathlib import Path

_PRINTED = re.compile(r'echo "((?:[^"\\]|\\.)*)" >&2')
_VALUE = re.compile(r"\$\{[^}]*\}|\$\w+")


def shell_messages(folder: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield file, line and text of each, with its values as "…"."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and begins_with(path, "sh"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for text in _PRINTED.findall(line):
                    yield path, number, _VALUE.sub("…", text)


def begins_with(path: Path, interpreter: str) -> bool:
    """Return whether a file says in its first line that ``interpreter`` runs it."""
    with path.open("rb") as file:
        first = file.readline(100)
    return re.match(rb"#!.*\b(ba)?" + interpreter.encode() + rb"\d?\b", first) is not None
