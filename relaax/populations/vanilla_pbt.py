"""Vanilla population-based training: seed 002; Jaderberg et al. 2017, arXiv:1711.09846."""

import math
import random
import statistics
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from relaax.configuration.population_rules import VanillaPbt
from relaax.populations.hyperparameters import explored
from relaax.populations.membership import EvaluatedEpisode


class Exploit(NamedTuple):
    """A member takes the parameters of a stronger one, and its hyperparameters with changes."""

    target: str
    source: str
    target_return: float
    source_return: float
    #: Of these means of a few episodes.
    target_error: float
    source_error: float
    #: Those of the source, and those that the target goes on with.
    copied: dict[str, Any]
    hyperparameters: dict[str, Any]


@dataclass
class Member:
    """A policy of the population, as its manager knows it."""

    hyperparameters: dict[str, Any]
    #: Returns of the last evaluated episodes with its present parameters.
    returns: deque[float]
    #: The newest version that was evaluated, and the one with which it was ready last.
    version: int = 0
    ready_at: int = 0
    #: Episodes of older versions do not count: they were played before its last exploit.
    counts_from: int = 0
    #: It was told to exploit this member, and its learner has not done so yet; "" otherwise.
    source: str = ""

    @property
    def is_waiting(self) -> bool:
        """Whether its learner has to exploit another member."""
        return self.source != ""

    @property
    def mean_return(self) -> float:
        """The mean of ``returns``, of which there is one at least."""
        return sum(self.returns) / len(self.returns)

    @property
    def standard_error(self) -> float:
        """The standard error of ``mean_return``; not a number for that of one episode."""
        count = len(self.returns)
        return math.nan if count < 2 else statistics.stdev(self.returns) / math.sqrt(count)


class VanillaPopulation:
    """Decides which member takes the parameters of which other.

    A member is ready when its newest evaluated version is ``ready_interval`` updates newer than at
    its last readiness, and so many ``episodes`` were played since its last exploit. A ready one
    that is among the worst exploits one of the best, drawn uniformly, if that has a higher return.
    One whose own parameters are still to be taken by another member stays as it is until then.
    ``hyperparameters`` are those that the members begin with, by name.
    """

    def __init__(self, rule: VanillaPbt, hyperparameters: Mapping[str, Mapping[str, Any]]) -> None:
        self._rule = rule
        self._random = random.Random(rule.seed)  # noqa: S311  # no secret depends on it
        self.truncated = rule.truncated(len(hyperparameters))
        self.members = {
            name: Member(dict(keys), deque(maxlen=rule.episodes))
            for name, keys in hyperparameters.items()
        }

    def note(self, name: str, episodes: Iterable[EvaluatedEpisode]) -> None:
        """Take evaluated episodes of a member."""
        member = self.members[name]
        for each in episodes:
            if each.version >= member.counts_from and not member.is_waiting:
                member.returns.append(each.episode_return)
                member.version = max(member.version, each.version)

    def went_on(self, name: str, version: int) -> None:
        """Take note that the learner of a member has its new parameters, as this version."""
        member = self.members[name]
        member.returns.clear()
        member.version = member.counts_from = version
        member.ready_at = max(member.ready_at, version)  # a manager before may have known more
        member.source = ""

    def exploits(self) -> list[Exploit]:
        """Return the exploits that begin now; their targets wait for their learners then."""
        if any(len(each.returns) < self._rule.episodes for each in self._acting()):
            return []
        ranked = sorted(
            (name for name, each in self.members.items() if not each.is_waiting),
            key=lambda name: self.members[name].mean_return,
        )
        if len(ranked) < 2 * self.truncated:
            return []
        taken = {each.source for each in self.members.values()}
        ready = [
            name for name in ranked if name not in taken and self._is_ready(self.members[name])
        ]
        for name in ready:
            self.members[name].ready_at = self.members[name].version
        worst, best = ranked[: self.truncated], ranked[-self.truncated :]
        found = [self._exploit(name, best) for name in worst if name in ready]
        return [each for each in found if each is not None]

    def missing(self) -> str:
        """Return in words whose evaluated episodes are too few for anybody to copy; or ""."""
        for name, member in self.members.items():
            if not member.is_waiting and len(member.returns) < self._rule.episodes:
                return (
                    f"{name} has {len(member.returns)} evaluated episodes with its present "
                    f"parameters, and nobody copies before each policy has {self._rule.episodes}"
                )
        return ""

    def _acting(self) -> Sequence[Member]:
        return [each for each in self.members.values() if not each.is_waiting]

    def _is_ready(self, member: Member) -> bool:
        return member.version - member.ready_at >= self._rule.ready_interval

    def _exploit(self, name: str, best: Sequence[str]) -> Exploit | None:
        source = self._random.choice(best)
        target, stronger = self.members[name], self.members[source]
        if stronger.mean_return <= target.mean_return:
            return None
        found = Exploit(
            name,
            source,
            target.mean_return,
            stronger.mean_return,
            target.standard_error,
            stronger.standard_error,
            stronger.hyperparameters,
            explored(stronger.hyperparameters, self._rule.explore_configs, self._random),
        )
        target.source = source
        return found
