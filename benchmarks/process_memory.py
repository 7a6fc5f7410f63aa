"""How much memory processes use, apart and together."""

import contextlib
import subprocess
from dataclasses import dataclass

import psutil
from servers import Servers

MIB = 1024 * 1024


@dataclass(frozen=True)
class Memory:
    """What some processes use, in bytes."""

    #: Shared pages counted for each process; the mean where there are several.
    resident: int
    #: Of all together: shared pages are divided among the processes that share them.
    proportional: int
    #: What would be free again if the process ended; the mean where there are several.
    private: int


def memory_of(processes: list[psutil.Process]) -> Memory:
    """Measure ``processes`` together; those that have ended are left out."""
    infos = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            infos.append(process.memory_full_info())
    if not infos:
        return Memory(0, 0, 0)
    return Memory(
        resident=sum(info.rss for info in infos) // len(infos),
        proportional=sum(info.pss for info in infos),
        private=sum(info.uss for info in infos) // len(infos),
    )


def mib_of(servers: Servers) -> float:
    """Return the MiB of both servers and all that they started, shared pages counted once."""
    processes = family_of(servers.parameter_server) + family_of(servers.rlx_server)
    return memory_of(processes).proportional / MIB


def family_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return a process and all that it started."""
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]
