"""Makes a replay whose memory is taken at the start, and not hours later."""

from dataclasses import replace

import numpy as np

from relaax.errors import ConfigurationError
from relaax.processes.available_memory import AvailableMemory
from relaax.replay.replay import Replay
from relaax.replay.specs import ReplaySpec

_MIB = 2**20

#: While a replay is saved there are, beside itself, a copy of it, and the bytes of the file.
COPIES_OF_A_SAVE = 2

#: The number of environments with a place is printed only below this.
FEW_ENVIRONMENTS = 1000


def replay_in_memory(
    spec: ReplaySpec,
    random: np.random.Generator,
    lease_s: float,
    is_saved: bool = False,
    available: AvailableMemory | None = None,
) -> Replay:
    """Return an empty replay, and take all its memory from the system; print the amount.

    ConfigurationError as of ``memory_of_replay``, and for a replay without a place for even one
    environment.
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
            f"beside those that are taken; {_mib(left)} are available; send smaller types, "
            "for example images as uint8, lower it, or add memory"
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
    """Return in words the memory that a replay takes, and the available memory.

    If it ``is_saved``, a save needs ``COPIES_OF_A_SAVE`` more. ConfigurationError if the machine,
    or a cgroup of the process, has less.
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
    """Return in words the memory of images of floats, if their type is still open."""
    if not spec.schema.is_open:
        return ""
    columns = spec.schema.columns
    floats = replace(spec, schema=spec.schema.settled(dict.fromkeys(columns, np.dtype("f4"))))
    return f"; if images come as float32, {_mib(floats.bytes * _times(is_saved))} are needed"


def _times(is_saved: bool) -> int:
    return 1 + COPIES_OF_A_SAVE * is_saved


def _mib(size: int) -> str:
    return f"{-(-size // _MIB):,} MiB"
