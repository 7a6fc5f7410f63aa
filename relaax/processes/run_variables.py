"""Variables by which ``relaax-train`` tells each process its place in the training."""

import os

#: Which copy of a command it is; the first is 0.
COPY = "RELAAX_COPY"

#: The name of its line in the Procfile; not set without one.
LINE = "RELAAX_LINE"

#: Which start of it: another number at each, 0 for the first start of a training.
INCARNATION = "RELAAX_INCARNATION"

#: The training's unique name; not set outside of ``relaax-train``.
RUN = "RELAAX_RUN"

MAX_RUN_CHARACTERS = 255


def run_of_this_process() -> str | None:
    """Return the name of the training that this process belongs to, if that is known.

    ValueError for a name that is too long.
    """
    name = os.environ.get(RUN, "").strip()
    if len(name) > MAX_RUN_CHARACTERS:
        raise ValueError(f"{RUN} has at most {MAX_RUN_CHARACTERS} characters, this {len(name)}")
    return name or None


def other_run(whose: str, theirs: str | None, own: str | None) -> str | None:
    """Return in words that ``whose``, of the training ``theirs``, does not belong to ``own``.

    None if it does, or if one of the two is not known.
    """
    if theirs is None or own is None or theirs == own:
        return None
    return (
        f"{whose} belongs to the training {theirs}, and this server to the training {own} ({RUN}): "
        "two trainings were given the same address; stop one of them, or give it other ports "
        "(--bind in its YAML file, and the addresses that its Procfile names). Where both are "
        f"parts of one training, set {RUN} to the same name for both"
    )


def number_in(name: str) -> int:
    """Return the whole number in a variable, 0 if it is not set; ValueError for anything else."""
    text = os.environ.get(name, "0")
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name} must be a whole number from 0 on, is {text!r}")
    return int(text)
