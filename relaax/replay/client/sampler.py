"""Draws batches of the items of several replay servers."""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from time import monotonic

import numpy as np
import numpy.typing as npt

from relaax.errors import BridgeError, ConfigurationError
from relaax.replay.client.stub import ReplayStub
from relaax.replay.client.watched_server import WatchedServer
from relaax.replay.mixed import Sources, Unfinished
from relaax.replay.replay import NotReady
from relaax.replay.selectors import FloatArray, IntArray
from relaax.replay.specs import ReplaySpec
from relaax.replay.table import Sample, joined, require_priorities
from relaax.telemetry.metrics import Metrics

#: So many incarnations of a server in a row have different keys.
EPOCHS = 16

#: A call that a server does not answer for so long has failed.
CALL_TIMEOUT_S = 3.0

#: So many calls of a server at a time; further ones wait.
MOST_CALLS = 8


@dataclass
class _Batch:
    """A batch in the making: the draws and payments that are left, and the drawn parts."""

    draws: int
    charge: int
    parts: list[Sample] = field(default_factory=list)


@dataclass(frozen=True)
class _Share:
    """A request to one server, by its number."""

    number: int
    #: Which of its incarnations is asked.
    epoch: int
    draws: int
    charge: int
    #: The server's part of all weights.
    weight: float


class ShardedSampler:
    """Draws from a table that several servers hold, as if it were one.

    Every item is as probable as in one table: a batch is divided in proportion to the servers'
    weights, which are their numbers of items or sums of priorities. The price of its draws in the
    table's ratio is divided in proportion to the servers' allowances. So a server with few items,
    or without new ones, delays nothing, and the ratio holds for all of them together. A server that
    does not answer is left out until it does. For several threads.
    """

    def __init__(
        self,
        urls: Sequence[str],
        table: str,
        spec: ReplaySpec,
        random: np.random.Generator,
        call_timeout_s: float = CALL_TIMEOUT_S,
        shares_memory: bool = True,
    ) -> None:
        self._table = table
        self._spec = spec
        self._axis = spec.view(table).item_axis
        self._is_queue = spec.own_tables[table].selector in ("fifo", "lifo")
        self._random = random
        self._changed = threading.Condition()
        self._unfinished = Unfinished(lambda count: _Batch(count, count))
        self._waiting = 0
        self._gone = 0
        self._threads = ThreadPoolExecutor(MOST_CALLS * len(urls), "replay sampler")
        #: The watched state of each server.
        self.servers = [
            WatchedServer(
                ReplayStub(url, call_timeout_s, shares_memory), table, self._require, self._changed
            )
            for url in urls
        ]

    @property
    def actions(self) -> int:
        """How many actions the servers have stored."""
        with self._changed:
            return sum(server.actions for server in self.servers)

    @property
    def lost(self) -> int:
        """How many stored steps were lost with servers that started again without them."""
        with self._changed:
            return sum(server.lost for server in self.servers)

    def report(self, metrics: Metrics) -> None:
        """Store how the servers are."""
        with self._changed:
            here = [server for server in self.servers if not server.is_away]
            steps = sum(server.steps for server in here)
        metrics.scalar("replay/servers away", len(self.servers) - len(here))
        metrics.scalar("replay/steps within reach", steps)
        metrics.scalar("replay/steps lost", self.lost)
        metrics.scalar("replay/priorities of gone items", self._gone)

    def sample(self, table: str, count: int, timeout_s: float) -> Sample:
        """Draw ``count`` items; NotReady if that is not possible within ``timeout_s``.

        Items drawn by then are part of the next batch. ConfigurationError, which names server and
        column, for a server that stores other steps.
        """
        self._require_table(table)
        deadline = monotonic() + timeout_s
        with self._unfinished.resumed(count) as batch:
            while batch.draws or batch.charge:
                added = self._add_to(batch, self._shares(batch, deadline))
                if not added and monotonic() >= deadline:
                    raise NotReady(self._whys() or f"no server gives items of {table}")
        with self._changed:
            items = sum(server.items for server in self.servers)
        return joined(batch.parts, self._axis, items)

    def update_priorities(self, table: str, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N]; return how many of them are gone, which is counted."""
        self._require_table(table)
        require_priorities(priorities)
        rest, epochs = np.divmod(keys, EPOCHS)
        own, numbers = np.divmod(rest, len(self.servers))

        def update(number: int) -> int:
            mine = numbers == number
            which = np.flatnonzero(mine & (epochs == self.servers[number].epoch % EPOCHS))
            gone = int(np.count_nonzero(mine)) - len(which)
            return gone + self._update(self.servers[number], own[which], priorities[which])

        gone = sum(self._threads.map(update, np.unique(numbers).tolist()))
        with self._changed:
            self._gone += gone
        return gone

    def close(self) -> None:
        """End all threads and close the channels."""
        for server in self.servers:
            server.close()
        self._threads.shutdown()

    def _shares(self, batch: _Batch, deadline: float) -> list[_Share]:
        """Wait until the servers allow the price of a batch; return the request to each."""
        with self._changed:
            while (missing := self._missing(batch.charge)) > 0:
                left = deadline - monotonic()
                if left <= 0:
                    return self._payments(batch, missing)
                for server in self.servers:
                    server.want(server.allowance + -(-missing // len(self.servers)))
                self._waiting += 1
                self._changed.wait(left)
                self._waiting -= 1
            return self._divided(batch.draws, batch.charge)

    def _payments(self, batch: _Batch, missing: float) -> list[_Share]:
        """Pay the present allowance, without draws; NotReady without any.

        A server that is ahead by less than a batch would otherwise take no steps, and wait for
        draws that never come. Items of a queue, which are drawn once, are drawn, too.
        """
        allowed = int(min(batch.charge, sum(server.allowance for server in self.servers)))
        if allowed < 1:
            not_yet = f"{missing:g} draws of {self._table} are not allowed yet"
            raise NotReady(self._whys() or not_yet)
        return self._divided(0, allowed)

    def _whys(self) -> str:
        """Return the servers' reasons why they give no more, as far as they are known."""
        return "; ".join(server.reason for server in self.servers if server.reason)

    def _missing(self, charge: int) -> float:
        """Return how much more must be allowed, 1 at least while nothing can be drawn."""
        for server in self.servers:
            if server.error is not None:
                raise server.error
        if not any(server.weight for server in self.servers):
            return max(charge, 1)
        return charge - sum(server.allowance for server in self.servers)

    def _divided(self, draws: int, charge: int) -> list[_Share]:
        """Return the request to each server, and reduce its allowance by it.

        A request to a queue draws as many items as it pays for, whatever ``draws`` is.
        """
        weights = np.array([server.weight for server in self.servers])
        allowed = np.array([server.allowance for server in self.servers])
        if np.isinf(allowed).any():
            allowed = np.where(np.isinf(allowed), weights, 0)
        to_pay = divided(charge, allowed, 0.0) if charge else np.zeros(len(allowed), np.int64)
        # Items of a queue are drawn when they are paid for: otherwise other samplers could draw
        # them, and a full batch would wait for an allowance that never comes.
        to_draw = to_pay if self._is_queue else divided(draws, weights, self._random.random())
        shares = [
            _Share(
                number,
                server.epoch,
                int(to_draw[number]),
                int(to_pay[number]),
                server.weight / float(weights.sum()),
            )
            for number, server in enumerate(self.servers)
            if to_draw[number] or to_pay[number]
        ]
        for share in shares:
            self.servers[share.number].spend(share.charge)
        if self._waiting:  # their claims were forgotten with it
            self._changed.notify_all()
        return shares

    def _add_to(self, batch: _Batch, shares: Sequence[_Share]) -> bool:
        """Make all requests, and store the answers; return whether there is any."""
        has_any = False
        for share, part in zip(shares, self._drawn(shares), strict=True):
            if part is not None:
                has_any = True
                batch.draws -= share.draws
                batch.charge -= share.charge
                batch.parts += [part] if share.draws else []
        return has_any

    def _drawn(self, shares: Sequence[_Share]) -> Iterable[Sample | None]:
        """Ask all servers at once; one alone on this thread, which takes less time."""
        if len(shares) == 1:
            return [self._draw(shares[0])]
        return self._threads.map(self._draw, shares)

    def _draw(self, share: _Share) -> Sample | None:
        """Return a part of the batch; None if the server does not give it."""
        server = self.servers[share.number]
        try:
            sample = server.stub.sample(self._table, share.draws, 0.0, share.charge)
        except BridgeError as error:  # however a server dies
            with self._changed:
                server.note_away(error)
            return None
        except NotReady as error:  # the known state was out of date
            with self._changed:
                server.note_empty(error)
            return None
        return self._owned(sample, share)

    def _owned(self, sample: Sample, share: _Share) -> Sample:
        """Return a server's part of a batch; no other server's items have its keys."""
        keys = (sample.keys * len(self.servers) + share.number) * EPOCHS + share.epoch % EPOCHS
        return replace(
            sample,
            keys=keys,
            probabilities=sample.probabilities * share.weight,
            least_probability=sample.least_probability * share.weight,
        )

    def _update(self, server: WatchedServer, keys: IntArray, priorities: FloatArray) -> int:
        if not len(keys):
            return 0
        try:
            return server.stub.update_priorities(self._table, keys, priorities, server.incarnation)
        except BridgeError as error:
            with self._changed:
                server.note_away(error)
            return len(keys)

    def _require(self, stub: ReplayStub) -> None:
        """Raise ConfigurationError unless the server stores these steps, in an equal table."""
        schema, kinds = stub.describe()
        wrong = self._spec.schema.differences(schema)
        expected = self._spec.tables[self._table].kind
        if (kind := kinds.get(self._table)) != expected:
            wrong.append(f"table {self._table!r} is {kind}, and must be {expected}")
        if wrong:
            raise ConfigurationError(f"the replay at {stub.url}: {'; '.join(wrong)}")

    def _require_table(self, table: str) -> None:
        if table != self._table:
            raise KeyError(f"{table!r} was not asked for, but {self._table!r}")


def divided(count: int, weights: npt.ArrayLike, offset: float) -> IntArray:
    """Divide ``count`` in proportion to ``weights`` [N] of a positive sum, int64 [N].

    With an ``offset`` drawn from [0, 1) each part is as large as its share in the mean, and less
    than 1 away from it (systematic sampling).
    """
    until = np.cumsum(np.asarray(weights, np.float64))
    bounds = np.floor(until * (count / until[-1]) + offset).astype(np.int64)
    bounds[-1] = count
    parts: IntArray = np.diff(np.minimum(bounds, count), prepend=0)
    return parts


class Samplers(Sources):
    """Draws from each of ``tables`` of a spec, mixed ones among them, that several servers hold."""

    def __init__(
        self,
        urls: Sequence[str],
        tables: Sequence[str],
        spec: ReplaySpec,
        random: np.random.Generator,
    ) -> None:
        names = dict.fromkeys(name for table in tables for name in spec.parts(table))
        #: The samplers of tables that have items of their own; all of them watch the same servers.
        self.by_table = {name: ShardedSampler(urls, name, spec, random) for name in names}
        self.first = next(iter(self.by_table.values()))
        super().__init__(spec, self.by_table)

    def close(self) -> None:
        """End all threads and close the channels."""
        for sampler in self.by_table.values():
            sampler.close()
