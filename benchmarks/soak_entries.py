"""The entries of the soak's ledger: steps that were sent, and what became of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """Steps that were lost in one way, the most that can have been, and what shows this."""

    name: str
    steps: int
    most: int
    reason: str

    @property
    def holds(self) -> bool:
        """Whether it is within its bounds."""
        return 0 <= self.steps <= self.most


@dataclass(frozen=True)
class Ledger:
    """All steps that clients have sent."""

    sent: int
    #: As the parameter server says itself.
    global_step: int
    losses: list[Entry]
    #: Steps that are on their way between two processes that run: none, when all is quiet.
    on_the_way: int

    @property
    def unexplained(self) -> int:
        """Steps that are neither counted nor lost, or counted twice."""
        return self.sent - self.global_step - sum(each.steps for each in self.losses)
