"""Counts episodes for operators, where no parameter server keeps their returns."""

from relaax.metrics import EPISODE_REWARD, Metrics
from relaax.server.rlx_server.tally import WorkerRow


class EpisodeCount(Metrics):
    """Counts the returns of episodes in ``row``, and drops all other scalars."""

    def __init__(self, row: WorkerRow) -> None:
        self._row = row

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Count ``y`` if it is the return of an episode that has ended."""
        if name == EPISODE_REWARD:
            self._row.count_episode(y)
