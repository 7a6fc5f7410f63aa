"""Variables by which ``relaax-train`` says to each process which one it is."""

import os

#: Which copy of a command it is; the first is 0.
COPY = "RELAAX_COPY"

#: Which start of it: another number at each, 0 for the first start of a training.
INCARNATION = "RELAAX_INCARNATION"


def number_in(name: str) -> int:
    """Return the whole number in a variable, 0 if it is not set; ValueError for anything else."""
    text = os.environ.get(name, "0")
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name} must be a whole number from 0 on, is {text!r}")
    return int(text)
