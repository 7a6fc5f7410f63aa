"""Plots of ``scale``: the model beside what was measured, and clusters."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scale_model import Model
from scale_rows import Row, Size

_SERVERS = (1, 4, 16, 64)
_SHARDS = (1, 2, 4)


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
    for label, chosen in (
        ("fitted", [row for row in rows if row.size.servers < most]),
        (f"{most} RLX servers, not fitted", [row for row in rows if row.size.servers == most]),
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
    connections = np.logspace(1, 4, 40).astype(int)
    for servers in _SERVERS:
        reached = []
        for count in connections:
            size = Size(servers, min(_SHARDS), int(count), 1, like.hidden, learns=True)
            limits = model.limits_of_a_cluster(size, environment_s)
            reached.append(min(limits["environments"], limits["rlx"]))
        axes.loglog(connections, reached, label=f"{servers} RLX server{'s' if servers > 1 else ''}")
    for shards in _SHARDS:
        size = Size(max(_SERVERS), shards, int(connections[-1]), 1, like.hidden, learns=True)
        limits = model.limits_of_a_cluster(size, environment_s)
        axes.axhline(limits["shards"], linestyle="--", linewidth=0.8, color="gray")
        left = connections[0] * 2.0 ** _SHARDS.index(shards)  # labels lie beside one another
        axes.text(left, limits["shards"], f"{shards} shard{'s' if shards > 1 else ''}", va="bottom")
    axes.axhline(limits["balancer"], linestyle=":", linewidth=0.8, color="black")
    axes.text(connections[0], limits["balancer"], "balancer, one core", va="bottom")
    axes.set(xlabel="connections, an environment on each", ylabel="steps/s of a cluster (model)")
    axes.legend()
