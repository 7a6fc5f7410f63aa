"""Explains the mistakes that pydantic finds in a configuration."""

import datetime
import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

#: Explanations by the start of pydantic's name of a mistake.
_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "no such key",
    "float_": "must be a number",
    "int_": "must be an integer",
    "bool_": "must be true or false",
    "string_type": "must be text",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a section of keys",
    "model_type": "must be a section of keys",
}

_NUMBER = re.compile(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?")


def explain(error: ValidationError) -> list[str]:
    """Return a line for each mistake: the key, the reason, and the given value."""
    lines = []
    for mistake in error.errors():
        key = ": ".join(str(part) for part in mistake["loc"] if not _is_internal(part))
        message = f"{_reason(mistake)}{_given(mistake)}"
        lines.append(f"{key}: {message}" if key else message)
    return lines


def as_written(value: Any) -> str:
    """Return a value about as it is written in YAML."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, datetime.date) else repr(value)


def _reason(mistake: ErrorDetails) -> str:
    for start, words in _WORDS.items():
        if mistake["type"].startswith(start):
            return words
    if mistake["type"].startswith("union_tag"):
        context = mistake["ctx"]
        tags = context.get("expected_tags", "").replace(", ", " or ")
        key = context["discriminator"].strip("'")
        return f"{key}: must be {tags}" if tags else f"{key}: is missing"
    message = re.sub(r"^(Value error|Assertion failed), ", "", mistake["msg"])
    message = message.replace("Input should be", "must be")
    return re.sub(r"\ba valid (?=([aeiou]?))", lambda found: "an " if found[1] else "a ", message)


def _given(mistake: ErrorDetails) -> str:
    """Return the given value, unless the message shows it or it belongs to no single key."""
    value = mistake["input"]
    is_said = mistake["type"] == "value_error" and repr(value) in mistake["msg"]
    if (
        is_said
        or not mistake["loc"]
        or mistake["type"] in ("missing", "extra_forbidden", "no_such_key")
    ):
        return ""
    return f", is {value if _is_read_as_number(mistake) else as_written(value)}"


def _is_read_as_number(mistake: ErrorDetails) -> bool:
    """Return whether the value is text that was read as a number, as on the command line."""
    value = mistake["input"]
    is_refused_as_text = mistake["type"].endswith("_type")
    return isinstance(value, str) and not is_refused_as_text and bool(_NUMBER.fullmatch(value))


def _is_internal(part: int | str) -> bool:
    """Return whether ``part`` is pydantic's name of a validator and not a user's key."""
    return isinstance(part, str) and "[" in part
