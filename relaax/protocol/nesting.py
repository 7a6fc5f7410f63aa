"""How deep lists and objects may lie in each other in JSON."""

import re

from relaax.errors import ProtocolError

#: An observation of Gymnasium's nested spaces has a few levels.
MAX_LEVELS = 64

#: A whole string, or one bracket outside of strings.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)

_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


def require_few_levels(text: str) -> None:
    """Raise ProtocolError for JSON with more than ``MAX_LEVELS`` lists and objects in each other.

    What walks through a value may then call itself for each level. ``text`` is looked at as it is,
    before anything is made of it; it may be no JSON at all.
    """
    if text.count("[") + text.count("{") <= MAX_LEVELS:
        return
    levels = 0
    for token in _TOKEN.finditer(text):
        levels += _STEPS.get(token[0], 0)
        if levels > MAX_LEVELS:
            raise ProtocolError(f"JSON is nested too deeply: at most {MAX_LEVELS} levels")
