"""Makes a replay whose memory is there from the beginning, and not hours later."""

import numpy as np

from relaax.errors import ConfigurationError
from relaax.replay.replay import Replay
from relaax.replay.specs import ReplaySpec
from relaax.server.common.available_memory import AvailableMemory

_MIB = 2**20

#: A replay in which so many environments have a place says nothing of them.
FEW_ENVIRONMENTS = 1000


def replay_in_memory(
    spec: ReplaySpec,
    random: np.random.Generator,
    lease_s: float,
    is_saved: bool = False,
    available: AvailableMemory | None = None,
) -> Replay:
    """Return an empty replay, all memory of which is this process's; print how much that is.

    ConfigurationError for what ``memory_of_replay`` refuses.
    """
    print(memory_of_replay(spec, is_saved, available), flush=True)
    replay = spec.make(random, lease_s)
    if not replay.most_environments:
        raise ConfigurationError(
            f"replay_size: {spec.capacity:,} steps are too few: they would be gone before a batch "
            "of them is complete"
        )
    replay.take_memory()
    if replay.most_environments < FEW_ENVIRONMENTS:
        print(
            f"replay_size: {spec.capacity:,} steps are learnt from of {replay.most_environments:,} "
            "environments that play at once; those of more are dropped",
            flush=True,
        )
    return replay


def memory_of_replay(
    spec: ReplaySpec, is_saved: bool = False, available: AvailableMemory | None = None
) -> str:
    """Return in words how much memory a replay takes, and how much is available.

    What ``is_saved`` is copied at each save, and needs as much again. ConfigurationError where the
    machine, or a cgroup of the process, has not so much.
    """
    left, needed = (available or AvailableMemory()).bytes(), spec.bytes * (2 if is_saved else 1)
    copies = ", and a copy of them while they are saved," if is_saved else ""
    says = (
        f"{spec.capacity:,} steps of {spec.schema.bytes:,} bytes{copies} take {_mib(needed)} of "
        f"memory; {_mib(left)} are available"
    )
    if needed > left:
        raise ConfigurationError(f"replay_size: {says}; lower it, or add memory")
    return f"replay: {says}"


def _mib(size: int) -> str:
    return f"{-(-size // _MIB):,} MiB"
