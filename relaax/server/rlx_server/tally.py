"""Counts of an RLX server and its workers, in memory that they share.

A row of cells for the server, and one for each worker. Each cell has one writer and is written at
once, without locks. Workers count on every turn; the counts are added up when somebody asks.
"""

import heapq
import mmap
import time
from array import array
from collections.abc import Sequence
from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relaax.server.rlx_server.places import OwnPlaces, PlaceTable
from relaax.telemetry.histograms import SECONDS, SIZES, Histogram, width
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, TAKEN, CountsRow, KeptCounts

FloatArray = npt.NDArray[np.float64]

#: So many workers are counted at a time; memory is taken for existing ones only.
MOST_WORKERS = 16_384

_FLOAT_BYTES = 8

#: The cells of a worker. When the turn began that goes on, by the monotonic clock; 0 before the
#: first one.
TURN_BEGAN = 0

#: Connections and environments that are served.
CONNECTIONS, ENVIRONMENTS = 1, 2

#: Actions that were chosen, each for a step of an environment.
STEPS = 3

#: Episodes that have ended, and the sum of their returns, which may shrink.
EPISODES, RETURNS = 4, 5

#: Connections that were closed, for their messages or silence, before they were served.
TURNED_AWAY = 6

#: Connections without a token or a certificate that counts.
ACCESS_DENIED = 7

#: Times that a connection had sent as many metrics as are read in a second.
RESTS = 8

_HISTOGRAMS_BEGIN = 9

#: From here on cells belong to the RLX server's sums when the worker has ended.
_SUMMED = STEPS

#: Steps whose reward has come, and that were lost with their worker.
LOST = "lost"


class Cell(IntEnum):
    """The cells of the server; all are 0 at the start. Moments are of the monotonic clock."""

    #: When the RLX server looked around last.
    LOOKED_AROUND = 0
    ACCEPTED = auto()
    REFUSED_FOR_MEMORY = auto()
    REFUSED_WITHOUT_WORKER = auto()
    #: Because of a limit of the number of connections.
    REFUSED_FOR_LIMIT = auto()
    #: Connections that were closed, for their messages or silence, before they got a worker.
    TURNED_AWAY = auto()
    #: The part of them without a valid token or certificate, also before they got a worker.
    ACCESS_DENIED = auto()
    WORKERS_LOST = auto()
    WORKERS_HUNG = auto()
    #: 1 while connections are taken.
    LISTENS = auto()
    #: 1 while the server drains.
    DRAINS = auto()
    #: Bytes of available memory, and of the memory that one more connection needs.
    AVAILABLE = auto()
    NEEDED = auto()
    #: When the parameter server answered last, and when it did not: the watcher writes these.
    PARAMETER_SERVER_ANSWERED = auto()
    PARAMETER_SERVER_WAS_AWAY = auto()


class Row:
    """Cells, float64, by their numbers."""

    def __init__(self, cells: "memoryview[float]") -> None:
        self._cells = cells

    def __getitem__(self, cell: int) -> float:
        return self._cells[cell]

    def __setitem__(self, cell: int, value: float) -> None:
        self._cells[cell] = value

    def add(self, cell: int, count: float = 1) -> None:
        """Count so many more."""
        self._cells[cell] += count

    def note_now(self, cell: int) -> None:
        """Take note of this moment."""
        self._cells[cell] = time.monotonic()

    def seconds_since(self, cell: int) -> float:
        """Return how long ago a moment was."""
        return time.monotonic() - self._cells[cell]


class _Place(NamedTuple):
    begin: int
    bounds: Sequence[float]

    @property
    def end(self) -> int:
        return self.begin + width(self.bounds)

    def histogram(self, cells: "memoryview[float]") -> Histogram:
        """Return the histogram in the cells of a worker."""
        return Histogram(self.bounds, cells[self.begin : self.end])


def _places() -> dict[str, _Place]:
    places, begin = dict[str, _Place](), _HISTOGRAMS_BEGIN
    for name, bounds in (
        ("latency", SECONDS), ("queue_wait", SECONDS), ("inference", SECONDS), ("batch_size", SIZES)
    ):  # fmt: skip
        places[name] = _Place(begin, bounds)
        begin = places[name].end
    return places


#: The histograms by name.
HISTOGRAMS = _places()

#: Cells of a worker.
WIDTH = max(place.end for place in HISTOGRAMS.values())


class WorkerRow(Row):
    """The row of one worker: [WIDTH], written by that worker alone.

    ``kept`` are the counts of steps that outlive the RLX server, too; ``places`` are for the
    worker's environments, by default places that no other process knows of.
    """

    def __init__(
        self, cells: "memoryview[float]", kept: CountsRow, places: OwnPlaces | None = None
    ) -> None:
        super().__init__(cells)
        self.kept = kept
        self.places = places or OwnPlaces(PlaceTable(most=1024, is_shared=False), owner=1)
        #: Seconds from the moment when messages are found to the last answer to them.
        self.latency = HISTOGRAMS["latency"].histogram(cells)
        #: Seconds that messages wait for the evaluation of the network, and that this takes.
        self.queue_wait = HISTOGRAMS["queue_wait"].histogram(cells)
        self.inference = HISTOGRAMS["inference"].histogram(cells)
        #: Environments of an evaluation.
        self.batch_size = HISTOGRAMS["batch_size"].histogram(cells)


def kept_steps(rows: int) -> KeptCounts:
    """Return the counts of steps of so many workers."""
    return KeptCounts([TAKEN, DELIVERED, DROPPED, LOST], rows)


def private_row(kept: CountsRow | None = None, places: OwnPlaces | None = None) -> WorkerRow:
    """Return a row that nobody reads, but for ``kept``: of a worker without an RLX server."""
    own = kept or kept_steps(1).row()
    return WorkerRow(memoryview(array("d", [0.0]) * WIDTH), own, places)


#: Odd while rows are being added up, and how many rows have ever been used.
_CHANGES, _USED = 0, 1
_HEAD = 2

#: How often a reader looks again whether rows are being added up.
_AGAIN_S = 0.001

#: A parent that was killed while it added up is never done.
_MOST_TRIES = 1000


class Tally:
    """A row for each worker, which an RLX server gives out and takes back.

    It is made before anything is forked. The RLX server alone calls ``take`` and ``give_back``; any
    process may read. If the workers ``deliver`` their steps, steps that a worker had not delivered
    when it ended are counted as lost.
    """

    def __init__(self, deliver: bool = False) -> None:
        self._deliver = deliver
        #: Steps by their fate; the next worker in a row goes on counting.
        self.kept = kept_steps(MOST_WORKERS + 1)
        cells = _HEAD + len(Cell) + (MOST_WORKERS + 1) * WIDTH
        everything = memoryview(mmap.mmap(-1, cells * _FLOAT_BYTES)).cast("d")
        self._head = everything[:_HEAD]
        self._rows_view = everything[_HEAD + len(Cell) :]
        #: float64 [rows, WIDTH]: the first row has the counts of departed workers.
        self._rows: FloatArray = np.asarray(self._rows_view).reshape(-1, WIDTH)
        #: A heap.
        self._free = list(range(1, MOST_WORKERS + 1))
        #: Where the environments of all workers are.
        self.places = PlaceTable()
        #: The figures of the whole server.
        self.state = Row(everything[_HEAD : _HEAD + len(Cell)])

    def take(self) -> int | None:
        """Return the number of a free row, for a worker; None if all are taken."""
        if not self._free:
            return None
        number = heapq.heappop(self._free)
        self._head[_USED] = max(self._head[_USED], number)
        return number

    def row(self, number: int | None) -> WorkerRow:
        """Return a row for its worker to write; for None a row that nobody reads."""
        if number is None:
            return private_row()
        cells = self._rows_view[number * WIDTH : (number + 1) * WIDTH]
        return WorkerRow(cells, self.kept.row(number), OwnPlaces(self.places, number))

    def give_back(self, number: int | None) -> None:
        """Add a departed worker's counts to the first row, and free its own."""
        if number is None:
            return
        if self._deliver:  # some of them may have been stored
            kept = self.kept.row(number)
            kept.add(LOST, kept[TAKEN] - kept[DELIVERED] - kept[DROPPED] - kept[LOST])
        self._head[_CHANGES] += 1
        self._rows[0, _SUMMED:] += self._rows[number, _SUMMED:]
        self._rows[number] = 0
        self.places.release(number)
        self._head[_CHANGES] += 1
        heapq.heappush(self._free, number)

    def turn_began(self, number: int | None) -> float:
        """Return when the turn of a worker began that goes on; 0 before the first one."""
        return 0.0 if number is None else float(self._rows[number, TURN_BEGAN])

    def totals(self) -> FloatArray:
        """Return the sums of all workers, float64 [WIDTH], departed ones included."""
        for _ in range(_MOST_TRIES):
            before = self._head[_CHANGES]
            sums: FloatArray = self._rows[: int(self._head[_USED]) + 1].sum(axis=0)
            if before % 2 == 0 and self._head[_CHANGES] == before:
                break
            time.sleep(_AGAIN_S)
        return sums
