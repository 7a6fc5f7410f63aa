"""What clients send, to servers of which kind; and whether there is memory for it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
from servers import ATARI, CARTPOLE, MIB

SHAPES: dict[str, tuple[dict[str, Any], np.ndarray]] = {
    "cartpole": (CARTPOLE, np.zeros(4, np.float32)),
    "atari": (ATARI, np.zeros((84, 84), np.uint8)),
}
MODES = ("inline", "batched")

#: About what processes own, see docs/performance.md; a worker of convolutions holds their inputs.
_SERVERS_MIB = 1200
_WORKER_MIB = {"inline": {"cartpole": 80, "atari": 120}, "batched": {"cartpole": 6, "atari": 6}}
_CLIENT_MIB = 12
#: Copies of an environment's observation: on both sides of the connection, its history, a rollout.
_COPIES = 30


class Unmeasured(Exception):
    """Why a cell has no figures."""


@dataclass(frozen=True)
class Cell:
    """What is measured together."""

    shape: str
    mode: str
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
    def needed_mib(self) -> float:
        """About the memory that servers and clients take together."""
        each = _WORKER_MIB[self.mode][self.shape] + _CLIENT_MIB
        observations = self.connections * self.environments * self.observation.nbytes
        return _SERVERS_MIB + self.connections * each + _COPIES * observations / MIB

    def require_memory(self) -> None:
        """Raise Unmeasured where there is not enough."""
        available = psutil.virtual_memory().available / MIB
        if available < self.needed_mib:
            raise Unmeasured(
                f"needs about {self.needed_mib:,.0f} MiB, {available:,.0f} MiB are available"
            )
