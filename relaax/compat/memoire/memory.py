"""``ReplayMemory``: entries of many clients, drawn by their errors, in rollouts.

Seed 001, "ReplayMemory", under its names.
"""

import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from relaax.compat.memoire.entry import Batch, MemoryClosed, as_tuples, require_rewards, schema_of
from relaax.compat.memoire.settings import MemorySettings
from relaax.compat.memoire.table import Endings, ErrorTable
from relaax.errors import ConfigurationError
from relaax.replay.client.stub import ReplayAway
from relaax.replay.replay import NotReady, Replay
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.table import Sample
from relaax.replay.writers import NoFreeSlot, Slot, Writers

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

#: The name of the only table.
TABLE = "memory"

#: A client of which nothing is heard for longer may lose its slot to a new one.
LEASE_S = 60.0

#: So many clients that lost their slot to a newer one of the same name are remembered.
MOST_REPLACED = 1024

#: A wait is one of several so long ones, between which a closed memory, or client, is noticed.
LONGEST_WAIT_S = 2.0

#: Pause between two questions, where a server answers at once or not at all.
PAUSE_S = 0.2


def tried(
    call: Callable[[float], Result | None],
    timeout_s: float | None,
    closed: threading.Event,
    lack: str = "",
) -> Result:
    """Return the first result of ``call`` that is not None; its argument is its longest wait.

    NotReady after ``timeout_s``, with the last reason or ``lack``, also while a server is away;
    without a time, wait for ever. MemoryClosed once ``closed`` is set.
    """
    deadline = np.inf if timeout_s is None else monotonic() + timeout_s
    while True:
        begun = monotonic()
        try:
            if (found := call(min(max(deadline - begun, 0.0), LONGEST_WAIT_S))) is not None:
                return found
        except (NotReady, ReplayAway) as error:
            if str(error) != lack:
                _log.info("waiting: %s", error)
            lack = str(error)
        except ValueError:  # gRPC raises it when its channel is closed
            if not closed.is_set():
                raise
        left_s = deadline - monotonic()
        if left_s <= 0:
            raise NotReady(lack)
        if closed.wait(max(0.0, min(left_s, PAUSE_S) - (monotonic() - begun))):
            raise MemoryClosed("it was closed while something waited for it")


class Clients(Writers):
    """Writers named ``uuid/token``, each of which has one of ``count`` slots.

    A client keeps its slot while it is heard of, and for ``lease_s`` afterwards. The next client
    with the same uuid has the same slot; the one before it, if it still runs, may write no more.
    The slot that became free first is given to others first. A slot's numbers are equal modulo
    ``count``.
    """

    def __init__(self, count: int, lease_s: float) -> None:
        super().__init__(lease_s, most_expired=0)  # their slots are given to others
        self._free = deque(range(count))
        #: By slot: the name of its latest client.
        self._names = [""] * count
        self._replaced: deque[str] = deque(maxlen=MOST_REPLACED)

    def open(self, name: str) -> list[Slot]:
        """See Writers; NoFreeSlot; ValueError if a newer client of the same name has its slot."""
        if name in self._writers:
            return super().open(name)
        left, index = self._found(name)
        self._free.remove(index)
        self._names[index] = name
        super().open(name)
        super().slot(name, 0).number = self._number(index)
        return left

    def slot(self, name: str, environment: int) -> Slot:
        """See Writers; ValueError for another environment than 0."""
        if environment != 0:
            raise ValueError(f"a client's only environment is number 0, not {environment}")
        return super().slot(name, environment)

    def renumber(self, slot: Slot) -> None:
        """See Writers."""
        slot.number = self._number(slot.number % len(self._names))

    def close(self, name: str) -> list[Slot]:
        """See Writers."""
        return self._freed(super().close(name))

    def expired(self) -> list[Slot]:
        """See Writers."""
        return self._freed(super().expired())

    def index_of(self, name: str) -> int:
        """Return which of the slots a client has."""
        return self._names.index(name)

    def _found(self, name: str) -> tuple[list[Slot], int]:
        """Return slots that are taken from others, and a free one for a new client."""
        uuids = [_uuid(each) for each in self._names]
        if not _uuid(name):
            raise ValueError("a client needs a name")
        if name in self._replaced:
            raise ValueError(f"another client with the uuid {_uuid(name)!r} has taken its slot")
        if _uuid(name) in uuids:
            index = uuids.index(_uuid(name))
            if self._names[index] in self._writers:
                self._replaced.append(self._names[index])
            return self.close(self._names[index]), index
        left = [] if self._free else self.expired()
        if not self._free:
            raise NoFreeSlot(
                f"all {len(uuids)} slots are taken; one becomes free when its client is closed, or "
                f"is not heard of for {self.lease_s:g} s"
            )
        return left, self._free[0]

    def _number(self, index: int) -> int:
        return self._new_number() * len(self._names) + index

    def _freed(self, slots: list[Slot]) -> list[Slot]:
        self._free.extend(slot.number % len(self._names) for slot in slots)
        return slots


def _uuid(name: str) -> str:
    uuid, slash, token = name.rpartition("/")
    return uuid if slash else token


class ReplayMemory(MemorySettings):
    """Entries of ``num_slot`` clients, at most ``max_step`` of each; for many threads.

    ``entry``: arrays that show the type and shape of each field. The last three are the reward, the
    probability of the action and the value. ConfigurationError for others. ``replay`` stores
    them, and its writers are the clients.
    """

    __slots__ = ("_closed", "_table", "clients", "replay")

    def __init__(
        self,
        entry: Sequence[npt.ArrayLike],
        max_step: int,
        n_slot: int,
        generator: np.random.Generator | None = None,
        lease_s: float = LEASE_S,
    ) -> None:
        if max_step < 1 or n_slot < 1:
            raise ConfigurationError(
                f"max_step and n_slot must be at least 1, are {max_step} and {n_slot}"
            )
        schema = schema_of(entry)
        require_rewards(schema)
        super().__init__(schema, n_slot, max_step, secrets.token_hex(8), lease_s, 0)
        capacity = n_slot * max_step
        view = Endings(self, np.zeros((capacity, self.value_buf.size)))
        table = TableSpec(view, "prioritized", alpha=1.0, table=ErrorTable)
        spec = ReplaySpec(schema, capacity, {TABLE: table}, rings=n_slot)
        self.clients = Clients(n_slot, lease_s)
        random = generator or np.random.default_rng()
        self.replay: Replay = spec.make(random, lease_s, writers=self.clients)
        self._table = cast(ErrorTable, self.replay.tables[TABLE])
        self._closed = threading.Event()

    @property
    def ma_sqa(self) -> float:
        """The mean squared error so far, which errors are compared with."""
        return self._table.scale.mean_square

    @property
    def total_weight(self) -> float:
        """The sum of all weights: an entry of weight W is drawn with W / total_weight."""
        return self.replay.alone(lambda: self._table.total_weight)

    @property
    def total_steps(self) -> int:
        """How many entries have come so far."""
        return self.replay.stored

    @property
    def total_episodes(self) -> int:
        """How many episodes have ended so far."""
        return self._table.episodes

    def __len__(self) -> int:
        """Return how many entries there are now."""
        return len(self.replay)

    def slot_of(self, client: str) -> int:
        """Give a client its slot and return it; NoFreeSlot, ValueError."""
        self.replay.open_writer(client, self.schema)
        return self.clients.index_of(client)

    def close(self) -> None:
        """Let all calls that wait for entries raise MemoryClosed."""
        self._closed.set()

    def get_data(self, batch_size: int, timeout_s: float | None = None) -> Batch:
        """Draw rollouts, and wait for entries if there are none.

        Return each field of an entry, then its return, as arrays [B, rollout_len, ...], and the
        weights float32 [B] by which entries were drawn; with ``multi_step``, fields twice: of the
        rollouts, and of those so many entries later. A rollout ends with the drawn entry. NotReady
        after ``timeout_s``, MemoryClosed.
        """
        return as_tuples(self.sample(batch_size, timeout_s))

    def sample(self, count: int, timeout_s: float | None = None) -> Sample:
        """Draw as ``get_data`` does; return the fields by name, and how probable each item was."""
        return tried(
            lambda left_s: self.replay.sample(TABLE, count, left_s), timeout_s, self._closed
        )

    def change(self, name: str, value: Any) -> None:
        """See MemorySettings; no other thread draws or stores meanwhile."""
        if name in ("rollout_len", "frame_stack") and value > self.max_step:
            raise ConfigurationError(
                f"{name} must be at most max_step, which is {self.max_step}, is {value}"
            )

        def set_and_renew() -> None:
            self.chosen[name] = value
            self._table.renew()

        self.replay.alone(set_and_renew)
