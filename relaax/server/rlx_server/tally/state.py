"""What the RLX server and its watcher write of the whole."""

import time
from enum import IntEnum, auto


class Cell(IntEnum):
    """The cells; all are 0 at the start. Moments are those of the monotonic clock."""

    #: When the RLX server looked around last.
    LOOKED_AROUND = 0
    ACCEPTED = auto()
    REFUSED_FOR_MEMORY = auto()
    REFUSED_WITHOUT_WORKER = auto()
    #: Because of a limit of the number of connections.
    REFUSED_FOR_LIMIT = auto()
    #: Before they were given to a worker: what they had said, or not, was wrong.
    TURNED_AWAY = auto()
    #: Those that had shown no token or certificate that counts: before that, too.
    ACCESS_DENIED = auto()
    WORKERS_LOST = auto()
    WORKERS_HUNG = auto()
    #: 1 while connections are taken.
    LISTENS = auto()
    #: 1 while connections are let go and none is taken.
    DRAINS = auto()
    #: Bytes of memory, and those that one more connection needs.
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
