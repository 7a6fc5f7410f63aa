"""Identifiers of versions of a policy, as texts: on command lines, and from process to process."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from relaax.errors import ConfigurationError

#: The number of a version, a tag, or a MongoDB query: one stage or several.
Identifier: TypeAlias = int | str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

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
