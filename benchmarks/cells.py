"""What is measured together: messages, connections and workers; whether memory is enough for it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
from launch import AUTO, CONNECTION, UNSET, Workers
from process_memory import MIB
from servers import ATARI, CARTPOLE

from relaax.processes.cgroups import usable_cores

SHAPES: dict[str, tuple[dict[str, Any], np.ndarray]] = {
    "cartpole": (CARTPOLE, np.zeros(4, np.float32)),
    "atari": (ATARI, np.zeros((84, 84), np.uint8)),
}

#: About what processes own, see docs/performance.md; a worker of convolutions holds their inputs.
_SERVERS_MIB = 1200
_WORKER_MIB = {"cartpole": 80, "atari": 120}
_CLIENT_MIB = 12
#: Copies of an environment's observation: on both sides of the connection, its history, a rollout.
_COPIES = 30


class Unmeasured(Exception):
    """Why a cell has no figures."""


@dataclass(frozen=True)
class Cell:
    """What is measured together."""

    shape: str
    workers: Workers
    protocol: int
    connections: int
    #: On each connection.
    environments: int

    @property
    def section(self) -> dict[str, Any]:
        """The configuration of the algorithm."""
        return SHAPES[self.shape][0]

    @property
    def observation(self) -> np.ndarray:
        """What every environment reports in every step."""
        return SHAPES[self.shape][1]

    @property
    def worker_count(self) -> int:
        """How many workers the RLX server forks; 0 if ``--workers`` is left out."""
        known = {CONNECTION: self.connections, AUTO: usable_cores(), UNSET: 0}
        return self.workers if isinstance(self.workers, int) else known[self.workers]

    def needed_mib(self, clients: int) -> float:
        """About the memory that servers and ``clients`` processes take together."""
        observations = self.connections * self.environments * self.observation.nbytes
        return (
            _SERVERS_MIB
            + self.worker_count * _WORKER_MIB[self.shape]
            + clients * _CLIENT_MIB
            + _COPIES * observations / MIB
        )

    def require(self, clients: int, most_workers: int) -> None:
        """Raise Unmeasured if the cell needs too many workers, or more memory than there is."""
        if self.worker_count > most_workers:
            raise Unmeasured(f"more than --most-workers {most_workers}")
        available, needed = psutil.virtual_memory().available / MIB, self.needed_mib(clients)
        if available < needed:
            raise Unmeasured(f"needs about {needed:,.0f} MiB, {available:,.0f} MiB are available")
