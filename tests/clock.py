"""A clock that a test sets."""


class Clock:
    """Says, when it is called, how many seconds it is; ``now`` may be changed."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
