"""Plots of ``scale``: the model beside what was measured, and clusters."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scale_model import Model
from scale_rows import Row, Size

_SERVERS = (1, 4, 16, 64)

#: By part of a cluster, how points are marked that it limits, and what it is called.
_MARKS = {
    "environments": (".", "environments"),
    "rlx": ("s", "RLX servers"),
    "balancer": ("^", "the balancer's core"),
    "shards": ("D", "the shard's core"),
}


def save_plot(
    path: Path, model: Model, rows: Sequence[Row], most: int, environment_s: float
) -> None:
    """Draw both into one file."""
    page = Figure(figsize=(12, 5), layout="constrained")
    left, right = page.subplots(1, 2)
    _draw_predictions(left, model, rows, most)
    _draw_clusters(right, model, rows[0].size, environment_s)
    path.parent.mkdir(parents=True, exist_ok=True)
    page.savefig(path, dpi=100)


def _draw_predictions(axes, model: Model, rows: Sequence[Row], most: int) -> None:  # type: ignore[no-untyped-def]
    busy = [row for row in rows if not row.size.rate]
    for label, chosen in (
        ("fitted", [row for row in busy if row.size.servers < most]),
        (f"{most} RLX servers, not fitted", [row for row in busy if row.size.servers == most]),
    ):
        expected = [model.steps_of_this_machine(row.size) for row in chosen]
        axes.loglog([row.steps for row in chosen], expected, "o", label=label)
    ends = np.array([min(row.steps for row in rows), max(row.steps for row in rows)])
    axes.loglog(ends, ends, "k-", linewidth=0.8)
    for factor in (0.8, 1.2):
        axes.loglog(ends, ends * factor, "k:", linewidth=0.8)
    axes.set(xlabel="measured steps/s on this machine", ylabel="model (dotted: 20 %)")
    axes.legend()


def _draw_clusters(axes, model: Model, like: Size, environment_s: float) -> None:  # type: ignore[no-untyped-def]
    """Draw what clusters reach: a line for each number of servers, a mark for what limits it."""
    connections = np.logspace(1, 4, 25).astype(int)
    limiting: dict[str, list[tuple[int, float]]] = {part: [] for part in _MARKS}
    for servers in _SERVERS:
        reached = []
        for count in connections:
            size = Size(servers, 1, int(count), 1, like.hidden, learns=True)
            limits = model.limits_of_a_cluster(size, environment_s)
            least = min(limits, key=lambda part: limits[part])
            reached.append(limits[least])
            limiting[least].append((count, limits[least]))
        axes.loglog(connections, reached, label=f"{servers} RLX server{'s' if servers > 1 else ''}")
    for part, (mark, name) in _MARKS.items():
        if limiting[part]:
            x, y = zip(*limiting[part], strict=True)
            axes.loglog(x, y, mark, color="black", markersize=4, label=f"limited by {name}")
    axes.set(xlabel="connections, an environment on each", ylabel="steps/s of a cluster (model)")
    axes.legend()
