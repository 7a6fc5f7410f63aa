"""Makes a replay whose memory is there from the beginning, and not hours later."""

from dataclasses import replace

import numpy as np

from relaax.errors import ConfigurationError
from relaax.processes.available_memory import AvailableMemory
from relaax.replay.replay import Replay
from relaax.replay.specs import ReplaySpec

_MIB = 2**20

#: While a replay is saved there are, beside itself, a copy of it, and the bytes written of that.
COPIES_OF_A_SAVE = 2

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

    ConfigurationError for what ``memory_of_replay`` refuses, and for a replay that no environment
    has a place in.
    """
    memory = available or AvailableMemory()
    print(memory_of_replay(spec, is_saved, memory), flush=True)
    replay = spec.make(random, lease_s)
    if not replay.most_environments:
        raise ConfigurationError(
            f"replay_size: {spec.capacity:,} steps are too few: they would be gone before a batch "
            "of them is complete"
        )

    def lacks(more: int) -> str:
        needed, left = more * _times(is_saved), memory.bytes()
        if needed <= left:
            return ""
        return (
            f"replay_size: {spec.capacity:,} steps of this type take {_mib(needed)} of memory "
            f"beside those that are taken; {_mib(left)} are available; send what takes less, such "
            "as images as uint8, lower it, or add memory"
        )

    replay.take_memory(lacks)
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

    What ``is_saved`` needs ``COPIES_OF_A_SAVE`` beside itself. ConfigurationError where the
    machine, or a cgroup of the process, has not so much.
    """
    left, needed = (available or AvailableMemory()).bytes(), spec.bytes * _times(is_saved)
    copies = ", and their copies while they are saved," if is_saved else ""
    says = (
        f"{spec.capacity:,} steps of {spec.schema.bytes:,} bytes{copies} take {_mib(needed)} of "
        f"memory; {_mib(left)} are available"
    )
    if needed > left:
        raise ConfigurationError(f"replay_size: {says}; lower it, or add memory")
    return f"replay: {says}{_of_floats(spec, is_saved)}"


def _of_floats(spec: ReplaySpec, is_saved: bool) -> str:
    """Return in words what images take that come as floats, where their type is still open."""
    if not spec.schema.is_open:
        return ""
    columns = spec.schema.columns
    floats = replace(spec, schema=spec.schema.settled(dict.fromkeys(columns, np.dtype("f4"))))
    return f"; if images come as float32, {_mib(floats.bytes * _times(is_saved))} are needed"


def _times(is_saved: bool) -> int:
    return 1 + COPIES_OF_A_SAVE * is_saved


def _mib(size: int) -> str:
    return f"{-(-size // _MIB):,} MiB"
