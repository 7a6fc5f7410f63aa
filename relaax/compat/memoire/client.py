"""``ReplayMemoryClient``: an actor's end (seed 001, under its names)."""

import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from relaax.compat.memoire.entry import Array, Batch, MemoryInfo, as_tuples, schema_of
from relaax.compat.memoire.memory import TABLE, tried
from relaax.compat.memoire.proxy import target_of
from relaax.compat.memoire.service import NOTHING, MemoireStub, message_of
from relaax.errors import ConfigurationError, RelaaxError
from relaax.net.payloads import Buffer
from relaax.replay.client.stub import ReplayAway
from relaax.replay.client.writer import ReplayWriter
from relaax.replay.replay import NotReady
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import START, TERMINATED
from relaax.replay.table import Sample

#: How long ``get_info`` waits for the server.
CONNECT_TIMEOUT_S = 60.0

#: A call that has no time left is given so long.
LEAST_CALL_S = 0.05

#: How long ``close`` waits for entries that are not stored yet.
CLOSE_TIMEOUT_S = 5.0


class ReplayMemoryClient:
    """Sends an actor's entries to a ``ReplayMemoryServer``, and receives its publications.

    The endpoints may be set later, but before they are used; ``req_endpoint`` is in place of one
    that is not set. ``uuid``: the client's name, drawn if omitted. Only one client at a time may
    have it. Made, or used first, after a fork, since gRPC has threads.
    """

    def __init__(
        self,
        sub_endpoint: str = "",
        req_endpoint: str = "",
        push_endpoint: str = "",
        uuid: str = "",
    ) -> None:
        if sub_endpoint and not (":" in sub_endpoint or req_endpoint or push_endpoint):
            sub_endpoint, uuid = "", sub_endpoint
        self.sub_endpoint = sub_endpoint
        self.req_endpoint = req_endpoint
        self.push_endpoint = push_endpoint
        self.uuid = uuid or secrets.token_hex(8)
        #: At most four times as many entries wait to be sent; set before ``get_info``.
        self.push_length = 32
        #: When the server is away for longer, entries are dropped to the end of their episode.
        self.push_timeout_s = 60.0
        #: These have no effect.
        self.sub_hwm = self.req_hwm = self.push_hwm = self.sub_buf_size = 0
        self._name = f"{self.uuid}/{secrets.token_hex(8)}"
        self._info: MemoryInfo | None = None
        self._writer: ReplayWriter | None = None
        self._stubs: dict[str, MemoireStub] = {}
        #: By topic: the version of the message that was returned last.
        self._known: dict[str, int] = {}
        self._starts = True
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def get_info(self, timeout_s: float = CONNECT_TIMEOUT_S) -> MemoryInfo:
        """Take a slot, and ask for an entry's fields; wait for a server that does not answer yet.

        ReplayAway if it does not within ``timeout_s``, or if other clients have all slots.
        """
        stub = self._stub(self.req_endpoint)

        def asked(left_s: float) -> MemoryInfo:
            return stub.get_info(self._name, max(left_s, LEAST_CALL_S))

        try:
            self._info = tried(asked, timeout_s, self._closed)
        except NotReady as error:
            raise ReplayAway(str(error)) from error
        self._write(self._info)
        return self._info

    @property
    def rem(self) -> MemoryInfo:
        """The description of the server's memory; asked for at the first use."""
        return self._info or self.get_info()

    @property
    def template(self) -> tuple[Array, ...]:
        """Zeros of an entry's types and shapes, to be filled."""
        return self.rem.view

    @property
    def dropped(self) -> int:
        """How many entries were dropped because the server was away for too long."""
        return 0 if self._writer is None else self._writer.dropped

    def add_entry(self, entry: Sequence[npt.ArrayLike], is_term: bool) -> None:
        """Send an entry, beside acting; its arrays may be filled again at once.

        Waits while 4 * ``push_length`` entries wait. ``is_term``: the episode ends with it.
        ConfigurationError, which names the field, for an entry of another kind.
        """
        info, arrays = self.rem, [np.array(part) for part in entry]
        if differences := info.schema.differences(schema_of(arrays)):
            raise ConfigurationError("; ".join(differences))
        names = info.schema.columns
        columns = {name: array[np.newaxis] for name, array in zip(names, arrays, strict=True)}
        flags = START * self._starts | TERMINATED * bool(is_term)
        step = StepBatch(np.zeros(1, np.int64), np.array([flags], np.uint8), columns)
        self._write(info).put(step)
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

    def push_worker_main(self) -> None:
        """Return when the client is closed; entries are sent by a thread of the client's own."""
        self._closed.wait()

    def get_data(self, batch_size: int, timeout_s: float | None = None) -> Batch:
        """Draw from the server as its own ``get_data`` does, in a learner that is elsewhere."""
        return as_tuples(self.sample(batch_size, timeout_s))

    def sample(self, count: int, timeout_s: float | None = None) -> Sample:
        """Draw as ``get_data`` does; return the fields by name, and how probable each item was.

        NotReady after ``timeout_s``, also while the server is away; MemoryClosed.
        """
        draw = self._stub(self.req_endpoint).sample
        return tried(lambda left_s: draw(TABLE, count, left_s), timeout_s, self._closed)

    def sub_bytes(self, topic: str = "", timeout_s: float | None = None) -> bytes:
        """Return the newest message of a topic, and wait for it if it was returned before.

        NotReady after ``timeout_s``, MemoryClosed.
        """
        fetch, known = self._stub(self.sub_endpoint).fetch, self._known.get(topic, NOTHING)
        lack = f"nothing new was published under {topic!r} in time"
        self._known[topic], data = tried(
            lambda left_s: fetch(topic, known, left_s), timeout_s, self._closed, lack
        )
        return bytes(data)

    def pub_bytes(self, topic: str | Buffer, data: Buffer | str | None = None) -> None:
        """Publish as the server's own ``pub_bytes`` does, in a learner that is elsewhere.

        ReplayAway if the server does not answer, NotReady if it has too many calls at once.
        """
        self._stub(self.req_endpoint).publish(*message_of(topic, data))

    def push_log(self, log_message: str) -> None:
        """Write a line to the server's log file.

        ReplayAway if the server does not answer, NotReady if it has too many calls at once.
        """
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

    def _stub(self, endpoint: str) -> MemoireStub:
        target = target_of(endpoint or self.req_endpoint)
        with self._lock:
            if target not in self._stubs:
                self._stubs[target] = MemoireStub(target)
            return self._stubs[target]

    def _write(self, info: MemoryInfo) -> ReplayWriter:
        """Return the writer of entries, by which the server hears of the client, too."""
        with self._lock:
            if self._writer is None:
                self._writer = ReplayWriter(
                    MemoireStub(target_of(self.push_endpoint or self.req_endpoint)),
                    info.schema,
                    most_waiting=4 * self.push_length,
                    timeout_s=self.push_timeout_s,
                    name=self._name,
                    whole_episodes=True,  # a memory's rows follow each other
                    lease_s=info.lease_s,
                )
            return self._writer
