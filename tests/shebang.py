"""Programs are told by their first line."""

import re
from pathlib import Path


def begins_with(path: Path, interpreter: str) -> bool:
    """Return whether a file says in its first line that ``interpreter`` runs it."""
    with path.open("rb") as file:
        first = file.readline(100)
    return re.match(rb"#!.*\b(ba)?" + interpreter.encode() + rb"\d?\b", first) is not None
