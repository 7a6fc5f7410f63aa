"""Which checkpoint a process begins with."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from relaax.configuration.option_kinds import RESTORABLE
from relaax.errors import ConfigurationError


@dataclass(frozen=True)
class Restore:
    """The latest one, or one before it; the best one; or the one of a step."""

    #: How many are skipped, of the newest.
    back: int = 0
    is_best: bool = False
    step: int | None = None
    #: The user's text, for messages.
    option: str = "--restore"

    @classmethod
    def parse(cls, text: str) -> "Restore":
        """Return the choice ``latest``, ``latest-2``, ``best`` or ``120000``; else ValueError."""
        found = RESTORABLE.fullmatch(text)
        if found is None:
            raise ValueError(f"must be latest, latest-N, best or a step, is {text!r}")
        return cls(
            back=int(found[2] or 0),
            is_best=found[1] == "best",
            step=None if found[3] is None else int(found[3]),
        )

    def asked_by(self, option: str) -> "Restore":
        """Return the same, asked for by another option."""
        return replace(self, option=option)

    @property
    def is_latest(self) -> bool:
        """Whether it is the latest one, so that nothing that was saved is given up."""
        return not self.back and not self.is_best and self.step is None

    def candidates(self, steps: Collection[int], best: Sequence[int], location: str) -> list[int]:
        """Return the existing steps to try, one after the other.

        ``best`` are the steps that have a score, in this order. ConfigurationError if the requested
        step is not among them.
        """
        newest = sorted(steps, reverse=True)
        if self.step is not None:
            return [self._existing(self.step, newest, location)]
        if self.is_best and newest and not best:
            raise ConfigurationError(
                f"{self.option} best: no checkpoint in {location} is known to be best: "
                "neither evaluations nor the returns of the training have been saved with them"
            )
        if self.is_best:
            return list(best)
        if self.back and self.back >= len(newest):
            raise ConfigurationError(
                f"{self.option} latest-{self.back}: there are {len(newest)} checkpoints in "
                f"{location}"
            )
        return newest[self.back :]

    def _existing(self, step: int, newest: Sequence[int], location: str) -> int:
        if step not in newest:
            known = ", ".join(str(each) for each in newest) or "none"
            raise ConfigurationError(
                f"{self.option} {step}: no checkpoint of that step is in {location}; there are: "
                f"{known}"
            )
        return step
