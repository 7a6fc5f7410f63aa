"""Which of several processes of a parameter server one is."""

import re
from dataclasses import dataclass

_WRITTEN = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)")


@dataclass(frozen=True)
class Shard:
    """One of several: the first is number 1 of ``count``."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Return the shard that ``2/3`` names; else ValueError."""
        found = _WRITTEN.fullmatch(text)
        if found is None or int(found[1]) > int(found[2]):
            raise ValueError(f"must be I/N, such as 1/3 for the first of three, is {text!r}")
        return cls(int(found[1]), int(found[2]))

    @property
    def is_first(self) -> bool:
        """Whether it is the one that counts steps, and decides when all save."""
        return self.index == 1

    def place(self, size: int) -> tuple[int, int]:
        """Return where its slice of a vector [size] begins and ends."""
        return size * (self.index - 1) // self.count, size * self.index // self.count

    def directory_name(self) -> str:
        """Return the name of its folder of checkpoints, of another shard than the first."""
        return f"shard-{self.index}-of-{self.count}"

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
