"""The stage of a curriculum, as a parameter server answers it."""

from typing import NamedTuple


class Stage(NamedTuple):
    """A stage: its number from 0, and its name."""

    number: int
    name: str
