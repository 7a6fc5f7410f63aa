"""Names of databases and of tags."""

import re
from typing import NamedTuple

from relaax.errors import ConfigurationError
from relaax.processes.identifiers import LATEST

#: Names are those of folders and objects in S3, too.
_NAME = re.compile(r"\w[\w.:-]{0,63}", re.ASCII)


class DatabaseName(NamedTuple):
    """The name of a database (seed 002, "About tags", 1)."""

    experiment: str
    trial: str
    policy: str

    def path(self) -> str:
        """Return the folder below the root; ConfigurationError for a name that is no folder's."""
        for part, name in self._asdict().items():
            _require_name(f"the name of the {part} of a parameter database", name)
        return "/".join(self)


def require_tag(tag: str) -> None:
    """Raise ConfigurationError for a tag that cannot be set."""
    _require_name("a tag", tag)
    if tag == LATEST:
        raise ConfigurationError(f"the tag {LATEST!r} moves by itself, with every push")
    if tag.isdigit():
        raise ConfigurationError(f"a tag of digits alone would look like a version, is {tag!r}")


def _require_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{kind} has up to 64 letters, digits, _, '.', ':' and -, begins with a letter, a "
            f"digit or _, and is {name!r}"
        )
