"""The counts that a worker writes of itself, and an RLX server of all."""

import time
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum, auto
from typing import NamedTuple

from relaax.server.rlx_server.tally.places import OwnPlaces, private_places
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, TAKEN, CountsRow, KeptCounts

#: Upper bounds of histograms of durations.
SECONDS = (
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip

#: Upper bounds of histograms of numbers of environments.
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

#: When the turn began that goes on, by the monotonic clock; 0 before the first one.
TURN_BEGAN = 0

#: From here on cells only grow, and belong to the RLX server's sums when the worker has ended.
STEPS = 3

#: Connections that were closed, for their messages or silence, before they were served.
TURNED_AWAY = 6

#: Connections without a token or a certificate that counts.
ACCESS_DENIED = 7

#: Times that a connection had sent as many metrics as are read in a second.
RESTS = 8

_AFTER_COUNTS = 9

#: Steps whose reward has come, and that were lost with their worker.
LOST = "lost"


class Cell(IntEnum):
    """The cells; all are 0 at the start. Moments are those of the monotonic clock."""

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


class ServerState:
    """Cells of the whole server, by name: float64 [len(Cell)]."""

    def __init__(self, cells: "memoryview[float]") -> None:
        self._cells = cells

    def __getitem__(self, cell: Cell) -> float:
        return self._cells[cell]

    def __setitem__(self, cell: Cell, value: float) -> None:
        self._cells[cell] = value

    def add(self, cell: Cell) -> None:
        """Count one more."""
        self._cells[cell] += 1

    def note_now(self, cell: Cell) -> None:
        """Take note of this moment."""
        self._cells[cell] = time.monotonic()

    def seconds_since(self, cell: Cell) -> float:
        """Return how long ago a moment was."""
        return time.monotonic() - self._cells[cell]


class Histogram:
    """Counts values by the first of ``bounds`` that they do not exceed, from cell ``begin`` on.

    The first cell has the sum of the values.
    """

    def __init__(self, cells: "memoryview[float]", begin: int, bounds: Sequence[float]) -> None:
        self._cells = cells
        self._begin = begin
        self._bounds = bounds

    @staticmethod
    def cells_of(bounds: Sequence[float]) -> int:
        """Return how many cells it takes: the sum, each bound, and all above."""
        return len(bounds) + 2

    def add(self, value: float, times: int = 1) -> None:
        """Count ``value`` so many times."""
        begin = self._begin
        self._cells[begin] += value * times
        self._cells[begin + 1 + bisect_left(self._bounds, value)] += times


class _Place(NamedTuple):
    begin: int
    bounds: tuple[float, ...]


#: Connections and environments that are served.
CONNECTIONS, ENVIRONMENTS = 1, 2


#: Episodes that have ended, and the sum of their returns, which may shrink.
EPISODES, RETURNS = 4, 5


def _places() -> dict[str, _Place]:
    places, begin = {}, _AFTER_COUNTS
    for name, bounds in (
        ("latency", SECONDS),
        ("queue_wait", SECONDS),
        ("inference", SECONDS),
        ("batch_size", tuple(float(size) for size in SIZES)),
    ):
        places[name] = _Place(begin, bounds)
        begin += Histogram.cells_of(bounds)
    return places


#: The histograms by name.
HISTOGRAMS = _places()

#: Cells of a row.
WIDTH = sum(Histogram.cells_of(place.bounds) for place in HISTOGRAMS.values()) + _AFTER_COUNTS


class WorkerRow:
    """The row of one worker: float64 [WIDTH], written by that worker alone.

    ``kept`` are the counts of steps that outlive the RLX server, too; ``places`` are for the
    worker's environments.
    """

    def __init__(
        self, cells: "memoryview[float]", kept: CountsRow, places: OwnPlaces | None = None
    ) -> None:
        self._cells = cells
        self._kept = kept
        self.places = places or private_places()

        def histogram(name: str) -> Histogram:
            return Histogram(cells, HISTOGRAMS[name].begin, HISTOGRAMS[name].bounds)

        #: Seconds from the moment when messages are found to the last answer to them.
        self.latency = histogram("latency")
        #: Seconds that messages wait for the evaluation of the network, and that this takes.
        self.queue_wait, self.inference = histogram("queue_wait"), histogram("inference")
        #: Environments of an evaluation.
        self.batch_size = histogram("batch_size")

    def begin_turn(self) -> None:
        """Take note that the worker is not stuck."""
        self._cells[TURN_BEGAN] = time.monotonic()

    def count_steps(self, steps: int) -> None:
        """Count actions that were chosen, each for a step of an environment."""
        self._cells[STEPS] += steps

    def count_taken(self, steps: int) -> None:
        """Count rewarded steps of environments that learn."""
        if steps:
            self._kept.add(TAKEN, steps)

    def count_delivered(self, steps: int) -> None:
        """Count steps that a learner or a replay server has acknowledged."""
        self._kept.add(DELIVERED, steps)

    def count_dropped(self, steps: int) -> None:
        """Count steps that no learner or replay server took in time."""
        self._kept.add(DROPPED, steps)

    def count_episode(self, episode_return: float) -> None:
        """Count an episode that has ended, with the sum of its rewards."""
        self._cells[EPISODES] += 1
        self._cells[RETURNS] += episode_return

    def count_turned_away(self, connections: int) -> None:
        """Count connections that had not begun as a client does."""
        self._cells[TURNED_AWAY] += connections

    def count_denied(self, connections: int) -> None:
        """Count connections that had shown no token or certificate that counts."""
        self._cells[ACCESS_DENIED] += connections

    def count_rest(self) -> None:
        """Count that a connection is not read before the next second: it sends many metrics."""
        self._cells[RESTS] += 1

    def note_served(self, connections: int, environments: int) -> None:
        """Store the numbers of served connections and environments."""
        self._cells[CONNECTIONS], self._cells[ENVIRONMENTS] = connections, environments


def kept_steps(rows: int) -> KeptCounts:
    """Return the counts of steps of so many workers."""
    return KeptCounts([TAKEN, DELIVERED, DROPPED, LOST], rows)


def private_row(kept: CountsRow | None = None, places: OwnPlaces | None = None) -> WorkerRow:
    """Return a row that nobody reads, but for ``kept``: of a worker without an RLX server."""
    own = kept or kept_steps(1).row()
    return WorkerRow(memoryview(array("d", [0.0]) * WIDTH), own, places)
