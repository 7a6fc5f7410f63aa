"""Which versions play next, so that each counted episode is of exactly two versions.

An actor worker plays one episode after the other by the versions that have a tag of the manager's;
both players pull at each reset. A report says the version of one player alone. So the tags move one
at a time, and an episode that has ended with a version that was not played before says that all
earlier ones are reported, and that all later ones have it, too.
"""

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relaax.errors import ConfigurationError

#: The version of each player: its place in the population.
Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Turn:
    """Give a player's tag to a version, and wait for so many episodes of it, reported by it.

    They count as episodes of ``cell``, where there is one.
    """

    player: int
    version: int
    episodes: int
    cell: Pair | None = None


def turns(
    tagged: Pair, missing: Collection[Pair], counts: Sequence[int], episodes: int
) -> Generator[Turn, None, None]:
    """Yield what is to be done, in this order, until all ``missing`` cells are played.

    tagged: the versions that are played now; counts: how many versions each player has.
    """
    now, left = list(tagged), set(missing)
    while left:
        fixed, version = _longest_line(left)
        moving = 1 - fixed
        line = [cell for cell in sorted(left) if cell[fixed] == version]
        left -= set(line)
        if now[fixed] != version:
            if counts[moving] > 1:
                now[moving] = _other(now[moving], counts[moving])
                yield Turn(moving, now[moving], 1)
            now[fixed] = version
            yield Turn(fixed, version, 1)
        line.sort(key=lambda cell: cell[moving] == now[moving])
        for cell in line:
            if cell[moving] == now[moving] and counts[moving] > 1:
                now[moving] = _other(now[moving], counts[moving])
                yield Turn(moving, now[moving], 1)
            now[moving] = cell[moving]
            yield Turn(moving, cell[moving], episodes, cell)


def _longest_line(cells: Collection[Pair]) -> tuple[int, int]:
    """Return a player, and its version with the most cells."""
    lines = {(player, cell[player]) for cell in cells for player in (0, 1)}
    return max(sorted(lines), key=lambda line: sum(cell[line[0]] == line[1] for cell in cells))


def _other(version: int, count: int) -> int:
    if count < 2:
        raise ConfigurationError("a player with one version has no other one")
    return (version + 1) % count
