"""Entries that are told apart by their first field, and memories of them."""

from collections.abc import Sequence

import numpy as np

from relaax.compat.memoire import ReplayMemory
from relaax.replay.storage import ENDS, NONE, START, TERMINATED

NUMBER = np.zeros([], np.float32)
#: One state, reward, probability and value, each a number.
ENTRY = (NUMBER, NUMBER, NUMBER, NUMBER)


def entry(number: float):
    """An entry of this number: reward 1, value -1."""
    return tuple(np.float32(part) for part in (number, 1, 0, -1))


def columns(numbers: Sequence[float], rewards=None, values=None):
    """Entries of these numbers; reward 1 and value -1 where they are omitted."""
    count = len(numbers)
    return {
        "entry[0]": np.array(numbers, np.float32),
        "reward": np.array(np.ones(count) if rewards is None else rewards, np.float32),
        "prob": np.zeros(count, np.float32),
        "value": np.array(-np.ones(count) if values is None else values, np.float32),
    }


def push(
    memory: ReplayMemory,
    numbers: Sequence[float],
    is_term: bool,
    slot: int = 0,
    *,
    starts: bool = False,
    **others,
):
    """Push entries of one episode: a client's newest one, unless that has ended or one starts."""
    name, replay = f"client {slot}/1", memory.replay
    replay.open_writer(name, replay.schema)
    of_client, storage = memory.clients.slot(name, 0), replay._storage  # noqa: SLF001
    newest = storage.newest(of_client.number)
    flags = np.zeros(len(numbers), np.uint8)
    flags[0] = START * (starts or newest == NONE or storage.flags[newest] & ENDS != 0)
    flags[-1] |= TERMINATED * is_term
    rows = columns(numbers, **others)
    replay.append(name, 0, of_client.next_step, rows, flags)


def memory_of(max_step: int = 4, n_slot: int = 2, **settings) -> ReplayMemory:
    """A memory with these properties, whose draws are the same in each run."""
    memory = ReplayMemory(ENTRY, max_step, n_slot, np.random.default_rng(1))
    for name, value in settings.items():
        setattr(memory, name, value)
    return memory


def states(memory: ReplayMemory, count: int = 200) -> set[tuple[float, ...]]:
    """The different rollouts of the first field that many draws bring."""
    fields, _ = memory.get_data(count, timeout_s=0)
    return {tuple(rollout.reshape(-1).tolist()) for rollout in fields[0]}
