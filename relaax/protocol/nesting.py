"""How much JSON may hold: it is made of text in one go, and nobody else is served meanwhile."""

import re

from relaax.errors import ProtocolError

#: An observation of Gymnasium's nested spaces has a few levels.
MAX_LEVELS = 64

#: Lists, objects and strings. A picture of 210 x 160 pixels in lists of three numbers has 34,000.
MAX_PARTS = 200_000

#: Numbers and other members of these; a state with more is sent as an array.
MAX_MEMBERS = 1_000_000

#: So many characters are counted at a time.
_PIECE = 1 << 20

#: A whole string, or one bracket outside of strings.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)

_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


def is_text(text: str) -> bool:
    """Return whether ``text`` can be written as UTF-8: JSON may hold half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_within_limits(text: str) -> None:
    """Raise ProtocolError for JSON with more than ``MAX_PARTS``, ``MAX_MEMBERS`` or ``MAX_LEVELS``.

    Levels are lists and objects in each other: a recursive reader calls itself for each. ``text``
    is counted as it is, before it is parsed; it may be no JSON at all, and the contents of strings
    count, too.
    """
    opened = _require_few(text)
    if opened <= MAX_LEVELS:
        return
    levels = 0
    for token in _TOKEN.finditer(text):
        levels += _STEPS.get(token[0], 0)
        if levels > MAX_LEVELS:
            raise ProtocolError(f"JSON is nested too deeply: at most {MAX_LEVELS} levels")


def _require_few(text: str) -> int:
    """Return how many lists and objects ``text`` opens; ProtocolError for too much in it.

    A piece after there is too much nothing more is counted: to count millions takes a tenth of a
    second, in which a worker serves nobody else.
    """
    opened = quotes = commas = 0
    for begin in range(0, len(text), _PIECE):
        end = begin + _PIECE
        opened += text.count("[", begin, end) + text.count("{", begin, end)
        quotes += text.count('"', begin, end)
        commas += text.count(",", begin, end)
        if opened + quotes // 2 > MAX_PARTS:
            raise _too_much(f"{MAX_PARTS:,} lists, objects and strings")
        if commas > MAX_MEMBERS:
            raise _too_much(f"{MAX_MEMBERS:,} numbers; an array has room for them")
    return opened


def _too_much(most: str) -> ProtocolError:
    return ProtocolError(f"JSON holds too much: at most {most}")
