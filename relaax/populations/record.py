"""Who copied whom in a population: a table, a plot, and what the manager goes on with."""

import csv
import io
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from relaax.checkpoints import BlobStore
from relaax.checkpoints.store import read_json
from relaax.errors import CheckpointError

_log = logging.getLogger(__name__)

#: The names of the files.
STATE, TABLE, PLOT = "population.json", "exploits.csv", "population.png"

#: When a member has more points in the plot, every second one is dropped.
MOST_POINTS = 1000

_COLUMNS = (
    "number", "target", "version", "target_return", "source", "source_version", "source_return",
    "hyperparameters",
)  # fmt: skip


@dataclass(frozen=True)
class ExploitRow:
    """An exploit that the learner of ``target`` has carried out."""

    #: Of the orders to this target, from 1 on.
    number: int
    target: str
    #: The first version of the target with the parameters of the source.
    version: int
    source: str
    #: The version of the source that was copied.
    source_version: int
    hyperparameters: dict[str, Any]
    #: Mean returns before; None where they could not be kept.
    target_return: float | None = None
    source_return: float | None = None


class PopulationRecord:
    """Keeps exploits and curves in ``store``; a manager that starts again goes on with them."""

    def __init__(self, store: BlobStore, names: Sequence[str]) -> None:
        self._store = store
        self.rows: list[ExploitRow] = []
        #: By member: versions, and the mean returns with them.
        self._curves: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
        #: By member: the version with which it was ready last.
        self.ready_at = dict.fromkeys(names, 0)
        #: By member: its mean return and that of its source, of an exploit that is under way.
        self.begun: dict[str, tuple[float | None, float | None]] = {}
        self._restore()

    def last_number(self, name: str) -> int:
        """Return the number of a member's last exploit that is recorded; 0 for none."""
        return max((row.number for row in self.rows if row.target == name), default=0)

    def note_return(self, name: str, version: int, mean_return: float) -> None:
        """Take a point of a curve, or its newest point anew."""
        points = self._curves[name]
        if points and version == points[-1][0]:
            points[-1] = version, mean_return  # of more of its episodes
        elif not points or version > points[-1][0]:
            points.append((version, mean_return))
            if len(points) > MOST_POINTS:
                del points[1::2]

    def note_exploit(self, row: ExploitRow) -> None:
        """Take an exploit, and write all files."""
        self.rows.append(row)
        self.write()

    def write(self) -> None:
        """Write all files."""
        self.keep_state()
        keep(self._store, TABLE, table(self.rows))
        with suppress(ImportError):  # without matplotlib the table says it all
            keep(self._store, PLOT, plotted(self._curves, self.rows))

    def keep_state(self) -> None:
        """Write what a manager goes on with."""
        state = {
            "exploits": [asdict(row) for row in self.rows],
            "curves": self._curves,
            "ready_at": self.ready_at,
            "begun": self.begun,
        }
        keep(self._store, STATE, json.dumps(state))

    def _restore(self) -> None:
        try:
            read_json(self._store, STATE, self._take)
        except CheckpointError as error:
            _log.warning("a new record begins: %s", error)

    def _take(self, state: Any) -> None:
        rows = [ExploitRow(**row) for row in state["exploits"]]
        curves = {
            name: [(int(version), float(mean)) for version, mean in points]
            for name, points in state["curves"].items()
        }
        # Older files have neither.
        ready_at = {name: int(of) for name, of in state.get("ready_at", {}).items()}
        begun = {name: (own, other) for name, (own, other) in state.get("begun", {}).items()}
        self.rows, self.begun = rows, begun
        self._curves.update((name, curves[name]) for name in self._curves if name in curves)
        self.ready_at.update((name, ready_at[name]) for name in self.ready_at if name in ready_at)


def keep(store: BlobStore, name: str, content: str | bytes) -> None:
    """Write a file of a manager; a failure is a warning, and the population goes on."""
    try:
        store.put(name, content.encode() if isinstance(content, str) else content)
    except CheckpointError as error:
        _log.warning("%s of the population is not written: %s", name, error)


def table(rows: Sequence[ExploitRow]) -> str:
    """Return CSV with a line for each exploit."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        values = {**asdict(row), "hyperparameters": json.dumps(row.hyperparameters)}
        writer.writerow([values[column] for column in _COLUMNS])
    return text.getvalue()


def plotted(curves: Mapping[str, Sequence[tuple[int, float]]], rows: Sequence[ExploitRow]) -> bytes:
    """Return a PNG of mean returns by version; an arrow leads from a source to its target.

    ImportError without matplotlib.
    """
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, points) in enumerate(curves.items()):
        colour = f"C{number}"
        axes.plot(*zip(*points or [(0, 0.0)], strict=True), color=colour, label=name)
        for row in rows:
            if row.source == name and None not in (row.source_return, row.target_return):
                axes.annotate(
                    "",
                    xy=(row.version, row.target_return),
                    xytext=(row.version, row.source_return),
                    arrowprops={"arrowstyle": "->", "color": colour},
                )
    axes.set(xlabel="version", ylabel="mean return of evaluated episodes")
    axes.set_title("an arrow leads from the copied policy, in its colour, to the one that copies")
    axes.legend()
    axes.grid(alpha=0.3)
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture)
    return picture.getvalue()
