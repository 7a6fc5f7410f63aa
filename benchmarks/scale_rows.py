"""What ``scale`` measures, and what a size reached."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: What processes are.
ROLES = ("clients", "balancer", "rlx", "shards")

#: With more connections than this, clients are not a process each: a few hold all connections.
MOST_CLIENT_PROCESSES = 64


@dataclass(frozen=True)
class Size:
    """What is started."""

    servers: int
    shards: int
    connections: int
    #: On each connection.
    environments: int
    #: Of the network's two layers.
    hidden: int
    learns: bool
    #: Steps a second that each connection offers; 0: as many as are answered.
    rate: float = 0.0

    @property
    def shares_client_processes(self) -> bool:
        """Whether a few processes hold all connections, with one environment on each."""
        return self.connections > MOST_CLIENT_PROCESSES

    @property
    def parameters(self) -> int:
        """How many the network has: two layers, two actions and a value."""
        return 4 * self.hidden + self.hidden**2 + 2 * self.hidden + 3 * self.hidden + 3


@dataclass(frozen=True)
class Row:
    """What one size reached; rates are per second, of all processes together."""

    size: Size
    steps: float
    p50_ms: float
    p99_ms: float
    #: Of the same clients with the same messages, when each is answered at once.
    echo_steps: float
    #: Evaluations of the network, and updates of the parameters.
    batches: float
    updates: float
    #: Cores in use, and MiB (shared pages counted once), by role.
    cores: Mapping[str, float]
    mib: Mapping[str, float]

    @property
    def messages(self) -> float:
        """Messages of clients, each answered by one."""
        return self.steps / self.size.environments


def rows_of(path: Path) -> list[Row]:
    """Return the rows that ``scale`` has written into a file."""
    return [
        Row(**{**each, "size": Size(**each["size"])})
        for each in json.loads(path.read_text(encoding="utf-8"))
    ]
