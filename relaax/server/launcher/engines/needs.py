"""What a process needs of the machine on which it runs."""

from dataclasses import dataclass
from enum import Enum


class Placement(Enum):
    """How processes are distributed over machines."""

    SPREAD = "spread"
    PACK = "pack"


@dataclass(frozen=True)
class Needs:
    """Cores, GPUs and GiB of memory; 0 for nothing that is kept for it."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory_gib: float = 0.0
