"""What is said about a name that does not exist."""

import difflib
from collections.abc import Collection


def did_you_mean(name: object, known: Collection[str]) -> str:
    """Return a question that names the one of ``known`` closest to ``name``, or list them all."""
    close = closest(name, known)
    return f"did you mean {close}?" if close else f"known keys are {', '.join(known)}"


def did_you_mean_one_of(name: object, known: Collection[str]) -> str:
    """Return a question to put behind a message, if one of ``known`` is close; else nothing."""
    close = closest(name, known)
    return f"; did you mean {close}?" if close else ""


def closest(name: object, known: Collection[str]) -> str | None:
    """Return the one of ``known`` that is written most like ``name``; None if none is close."""
    return next(iter(difflib.get_close_matches(str(name), known, n=1)), None)
