"""What ``ReplayMemoryClient`` does: an actor's end (seed 001, under its names)."""

import logging
import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from relaax.compat.memoire.entry import Array, Batch, as_tuples, schema_of, templates_of
from relaax.compat.memoire.memory import ReplayMemory
from relaax.compat.memoire.ports import is_endpoint, target_of
from relaax.compat.memoire.served_memory import TABLE
from relaax.compat.memoire.stub import MemoireStub, SlotInfo
from relaax.compat.memoire.subscriber import Subscriber, waits
from relaax.compat.memoire.topics import message_of
from relaax.errors import ConfigurationError, RelaaxError
from relaax.net.payloads import Buffer
from relaax.replay.client.stub import ReplayAway, ReplayStub
from relaax.replay.client.writer import BEATS, ReplayWriter
from relaax.replay.replay import NotReady
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import START, TERMINATED
from relaax.replay.table import Sample
from relaax.replay.writers import UnknownWriter

#: Entries that are stored at once.
ENTRIES_AT_ONCE = 32

#: How long ``get_info`` waits for the server.
CONNECT_TIMEOUT_S = 60.0

#: A call that has no time left is given so long.
LEAST_CALL_S = 0.05

#: How long ``close`` waits for what is not stored yet.
CLOSE_TIMEOUT_S = 5.0

_log = logging.getLogger(__name__)


class LocalMemory:
    """Entries of one client, with the properties of the server's memory."""

    def __init__(self, info: SlotInfo) -> None:
        self._memory = ReplayMemory(info.view, info.max_step, 1)
        for name, value in info.settings.items():
            setattr(self._memory, name, value)
        # Draws are from here; how many are sent at once is not the memory's.
        self._memory.cache_size, self.cache_size = 0, self._memory.cache_size
        self._waiting: list[StepBatch] = []

    def put(self, entry: StepBatch) -> None:
        """Store an entry, at the latest with the next sample."""
        if entry.flags[0] & START:
            self._store()
            self._memory.end_episode(0)
        self._waiting.append(entry)
        if len(self._waiting) >= ENTRIES_AT_ONCE:
            self._store()

    def sample(self) -> tuple[Sample, float]:
        """Draw what is sent, and return the sum of all weights with it; NotReady without any."""
        self._store()
        return self._memory.sample(self.cache_size, timeout_s=0), self._memory.total_weight

    def _store(self) -> None:
        if self._waiting:
            entries = StepBatch.concatenated(self._waiting)
            terms = (entries.flags & TERMINATED).astype(np.bool_)
            self._memory.push(0, entries.columns, terms)
            self._waiting.clear()


class ReplayMemoryClient:
    """Sends an actor's entries to a ``ReplayMemoryServer``, and receives what it publishes.

    The endpoints may be set later, but before they are used; one that is not set is that of
    ``req_endpoint``. ``uuid``: the client's name, drawn if omitted. Only one client at a time may
    have it. Made, or used first, after a fork, since gRPC has threads.
    """

    def __init__(
        self,
        sub_endpoint: str = "",
        req_endpoint: str = "",
        push_endpoint: str = "",
        uuid: str = "",
    ) -> None:
        if sub_endpoint and not (is_endpoint(sub_endpoint) or req_endpoint or push_endpoint):
            sub_endpoint, uuid = "", sub_endpoint
        self.sub_endpoint = sub_endpoint
        self.req_endpoint = req_endpoint
        self.push_endpoint = push_endpoint
        self.uuid = uuid or secrets.token_hex(8)
        #: At most four times as many entries wait to be sent.
        self.push_length = 32
        #: When the server is away for longer, entries are dropped to the end of their episode.
        self.push_timeout_s = 60.0
        #: These have no effect.
        self.sub_hwm = self.req_hwm = self.push_hwm = self.sub_buf_size = 0
        self._name = f"{self.uuid}/{secrets.token_hex(8)}"
        self._info: SlotInfo | None = None
        self._writer: ReplayWriter | None = None
        self._memory: LocalMemory | None = None
        self._stubs: dict[str, MemoireStub] = {}
        self._replay: ReplayStub | None = None
        self._subscriber: Subscriber | None = None
        self._starts = True
        self._heard: threading.Thread | None = None
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def get_info(self, timeout_s: float = CONNECT_TIMEOUT_S) -> SlotInfo:
        """Take a slot, and ask what an entry is; wait for a server that does not answer yet.

        ReplayAway if it does not within ``timeout_s``, or if other clients have all slots.
        """
        stub = self._stub(self.req_endpoint)
        away = ReplayAway(f"Memoire server {stub.target} did not answer within {timeout_s:g} s")
        for left_s in waits(timeout_s, self._closed):
            try:
                self._info = stub.get_info(self._name, max(left_s, LEAST_CALL_S))
                self._begin_to_be_heard(stub)
                return self._info
            except ReplayAway as error:
                if str(error) != str(away):
                    _log.warning("waiting for a slot: %s", error)
                away = error
        raise away

    @property
    def rem(self) -> SlotInfo:
        """What the server's memory is; asks, the first time."""
        return self._info or self.get_info()

    @property
    def slot_index(self) -> int:
        """The client's slot."""
        return self.rem.slot_index

    @property
    def entry_size(self) -> int:
        """Bytes of an entry, with its return."""
        return self.rem.entry_size

    @property
    def template(self) -> tuple[Array, ...]:
        """Zeros of an entry's types and shapes, to be filled."""
        return templates_of(self.rem.schema)

    @property
    def dropped(self) -> int:
        """How many entries were dropped because the server was away for too long."""
        return 0 if self._writer is None else self._writer.dropped

    def add_entry(self, entry: Sequence[npt.ArrayLike], is_term: bool) -> None:
        """Send an entry, beside acting; its arrays may be filled again at once.

        Waits while 4 * ``push_length`` entries wait. ``is_term``: the episode ends with it.
        ConfigurationError, which names the field, for an entry of another kind.
        """
        arrays = [np.array(part) for part in entry]
        differences = self.rem.schema.differences(schema_of(arrays))
        if differences:
            raise ConfigurationError("; ".join(differences))
        columns = {
            name: array[np.newaxis]
            for name, array in zip(self.rem.schema.columns, arrays, strict=True)
        }
        flags = START * self._starts | TERMINATED * bool(is_term)
        step = StepBatch(np.zeros(1, np.int64), np.array([flags], np.uint8), columns)
        self._sink().put(step)
        self._starts = bool(is_term)

    def end_episode(self) -> None:
        """Let the next entry begin another episode: the one before was cut off, and not ended."""
        self._starts = True

    def push_data(
        self,
        rollout: Sequence[Sequence[npt.ArrayLike]],
        is_term: bool,
        timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        """Send several entries and wait until the server has stored them.

        ``is_term``: the episode ends with the last one. ReplayAway if it has not in time.
        """
        for number, entry in enumerate(rollout, 1):
            self.add_entry(entry, is_term and number == len(rollout))
        if not self.flush(timeout_s):
            raise ReplayAway(f"entries were not stored within {timeout_s:g} s; they still wait")

    def flush(self, timeout_s: float = CONNECT_TIMEOUT_S) -> bool:
        """Wait until all entries are stored; return False if they are not in time."""
        return self._writer is None or self._writer.flush(timeout_s)

    def push_cache(self) -> None:
        """Draw ``cache_size`` of the client's own entries, and send them in place of those before.

        For a server with ``rem.cache_size``. NotReady without entries; ReplayAway if the server
        does not answer.
        """
        memory = self._local()
        sample, total = memory.sample()
        stub = self._stub(self.push_endpoint)
        try:
            stub.push_cache(self._name, sample, total)
        except UnknownWriter:  # the server has started again
            self.get_info()
            stub.push_cache(self._name, sample, total)

    def push_worker_main(self) -> None:
        """Return when the client is closed; entries are sent by a thread of the client's own."""
        self._closed.wait()

    def get_data(self, batch_size: int, timeout_s: float | None = None) -> Batch:
        """Draw from the server as its own ``get_data`` does, in a learner that is elsewhere."""
        return as_tuples(self.sample(batch_size, timeout_s))

    def sample(self, count: int, timeout_s: float | None = None) -> Sample:
        """Draw as ``get_data`` does; return what is drawn by names, and how probable it was.

        NotReady after ``timeout_s``, also while the server is away; MemoryClosed.
        """
        with self._lock:
            if self._replay is None:
                self._replay = ReplayStub(target_of(self.req_endpoint))
            replay = self._replay
        for left_s in waits(timeout_s, self._closed):
            with suppress(NotReady, ReplayAway):
                return replay.sample(TABLE, count, left_s)
        raise NotReady(f"{count} entries could not be drawn in time")

    def sub_bytes(self, topic: str = "", timeout_s: float | None = None) -> bytes:
        """Return the newest message of a topic, and wait for it if it was returned before.

        NotReady after ``timeout_s``, MemoryClosed.
        """
        stub = self._stub(self.sub_endpoint)
        with self._lock:
            if self._subscriber is None:
                self._subscriber = Subscriber(stub, self._closed)
        return bytes(self._subscriber.next(topic, timeout_s).data)

    def pub_bytes(self, topic: str | Buffer, data: Buffer | str | None = None) -> None:
        """Publish as the server's own ``pub_bytes`` does, in a learner that is elsewhere.

        ReplayAway if the server does not answer.
        """
        self._stub(self.req_endpoint).publish(*message_of(topic, data))

    def push_log(self, log_message: str) -> None:
        """Write a line to the server's log file; ReplayAway if the server does not answer."""
        self._stub(self.push_endpoint).write_log(self._name, log_message)

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Wait until all entries are stored, or ``timeout_s`` are over, and give the slot back."""
        self._closed.set()
        if self._writer is not None:
            with suppress(RelaaxError):  # an entry that was refused has been reported before
                self._writer.flush(timeout_s)
            self._writer.close()
        with self._lock:
            for stub in self._stubs.values():
                stub.close()
            if self._replay is not None:
                self._replay.close()

    def _begin_to_be_heard(self, stub: MemoireStub) -> None:
        """Let the server hear of the client until it has a writer, of which the server hears."""
        with self._lock:
            if self._heard is None and self.rem.lease_s > 0:
                self._heard = threading.Thread(
                    target=self._be_heard, args=(stub,), name="memoire client", daemon=True
                )
                self._heard.start()

    def _be_heard(self, stub: MemoireStub) -> None:
        while not self._closed.wait(self.rem.lease_s / BEATS) and self._writer is None:
            with suppress(RelaaxError, ValueError):  # ValueError: the channel has been closed
                stub.get_info(self._name, CONNECT_TIMEOUT_S)

    def _stub(self, endpoint: str) -> MemoireStub:
        target = target_of(endpoint or self.req_endpoint)
        with self._lock:
            if target not in self._stubs:
                self._stubs[target] = MemoireStub(target)
            return self._stubs[target]

    def _sink(self) -> ReplayWriter | LocalMemory:
        return self._local() if self.rem.settings.get("cache_size") else self._writing()

    def _local(self) -> LocalMemory:
        if self._memory is None:
            self._memory = LocalMemory(self.rem)
        return self._memory

    def _writing(self) -> ReplayWriter:
        if self._writer is None:
            self._writer = ReplayWriter(
                ReplayStub(target_of(self.push_endpoint or self.req_endpoint)),
                self.rem.schema,
                most_waiting=4 * self.push_length,
                timeout_s=self.push_timeout_s,
                name=self._name,
                whole_episodes=True,  # a memory's rows follow each other
            )
        return self._writer
