"""Identifiers of versions of a policy, as texts: on command lines, and from process to process."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from relaax.errors import ConfigurationError

#: The number of a version, a tag, or a MongoDB query: one stage or several.
Identifier: TypeAlias = int | str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

#: Names are those of folders and objects in S3, too.
_NAME = re.compile(r"\w[\w.:-]{0,63}", re.ASCII)

_LETTERS = "has up to 64 letters, digits, _, '.', ':' and -, and begins with a letter, a digit or _"

#: Tags that the training itself sets are times.
TIME_TAG_FORMAT, _TIME_TAG = "%Y%m%d_%H%M%S", re.compile(r"\d{8}_\d{6}")

#: The tag that moves with every push: pulling it needs no database.
LATEST = "latest"


def identifier_of(text: str) -> Identifier:
    """Return the identifier that a text means; ConfigurationError for a query that is no JSON.

    Tags do not consist of digits alone, and do not begin as JSON does.
    """
    if text.isdecimal():
        return int(text)
    if not text.startswith(("{", "[")):
        return text
    try:
        query: Identifier = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"the query {text} is no JSON: {error}") from None
    return query


def text_of(identifier: Identifier) -> str:
    """Return the text that ``identifier_of`` reads."""
    return identifier if isinstance(identifier, str) else json.dumps(identifier)


def is_time_tag(tag: str) -> bool:
    """Return whether the training itself sets such a tag, with a version that it keeps."""
    return _TIME_TAG.fullmatch(tag) is not None


def require_name(kind: str, name: str) -> None:
    """Raise ConfigurationError for a name of this kind that no folder has."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{kind} {_LETTERS}, and is {name!r}")


def require_tag(tag: str) -> None:
    """Raise ConfigurationError for a tag that cannot be set."""
    if not _NAME.fullmatch(tag) or tag.isdigit() or tag == LATEST:
        raise ConfigurationError(
            f"a tag {_LETTERS}. It has not digits alone, as a version has, and {LATEST!r} moves by "
            f"itself; it is {tag!r}"
        )
