"""How often, and after which pauses, to try again."""

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with jitter.

    The pause before attempt k + 1 is ``initial_s * factor ** (k - 1)``, at most ``max_s``, less a
    random part of up to ``jitter`` (0 to 1) of itself, so that many clients do not return at once.
    """

    initial_s: float = 0.5
    factor: float = 2.0
    max_s: float = 30.0
    jitter: float = 0.5
    attempts: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.initial_s <= self.max_s:
            raise ValueError(f"0 <= initial_s <= max_s, got {self.initial_s} and {self.max_s}")
        if self.factor < 1:
            raise ValueError(f"factor must be at least 1, is {self.factor}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be between 0 and 1, is {self.jitter}")
        if self.attempts < 1:
            raise ValueError(f"attempts must be at least 1, is {self.attempts}")

    def pauses(self, rng: random.Random) -> Iterator[float]:
        """Yield pauses in seconds, without end; the caller counts the attempts."""
        pause_s = self.initial_s
        while True:
            yield pause_s * (1 - self.jitter * rng.random())
            pause_s = min(pause_s * self.factor, self.max_s)
