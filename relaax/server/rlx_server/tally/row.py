"""What a worker writes of itself."""

import time
from array import array
from typing import NamedTuple

from relaax.server.rlx_server.tally.cells import SECONDS, SIZES, Histogram


class _Place(NamedTuple):
    begin: int
    bounds: tuple[float, ...]


#: When the turn began that goes on, by the monotonic clock; 0 before the first one.
TURN_BEGAN = 0

#: Connections and environments that are served.
CONNECTIONS, ENVIRONMENTS = 1, 2

#: From here on cells only grow, and belong to the RLX server's sums when the worker has ended.
STEPS = 3

_AFTER_COUNTS = 4


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
    """The row of one worker: float64 [WIDTH], written by that worker alone."""

    def __init__(self, cells: "memoryview[float]") -> None:
        self._cells = cells

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

    def note_served(self, connections: int, environments: int) -> None:
        """Take note of what is served now."""
        self._cells[CONNECTIONS], self._cells[ENVIRONMENTS] = connections, environments


def private_row() -> WorkerRow:
    """Return a row that nobody reads: of a worker without an RLX server."""
    return WorkerRow(memoryview(array("d", [0.0]) * WIDTH))
