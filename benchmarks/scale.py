"""How a training scales: RLX servers behind HAProxy, shards of the parameter server, and a model.

    python benchmarks/scale.py
    python benchmarks/scale.py --servers 1 2 4 --shards 1 2 4 --rounds 3
    python benchmarks/scale.py --from benchmarks/results/scale.json --plot docs/images/scale.png

Each row is a training (DA3C, two dense layers) of bundled clients behind a real HAProxy with the
configuration of ``deploy/haproxy``: steps a second and latency of a message, the echo limit of the
same clients behind the same HAProxy, cores in use and MiB by role. All of it runs on this machine.

Rows of 200 connections and more have an environment on each, and a few client processes for all.
Those with a ``rate`` offer so many steps a second on each connection: what they use beside the cost
of these steps is what connections cost that wait.

Then a cost model is fitted to the rows with fewer RLX servers than the most (``scale_model``). It
says what the others should have reached; and what clusters would reach in which each server and
each shard has a machine of its own: 10 to 10,000 connections on 1 to 64 servers.

``--from FILE`` takes the rows of a file; with ``--complete`` it measures the sizes that this lacks,
and with ``--again`` all, of which the faster rows count.
"""

import argparse
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cells import Unmeasured
from processes import allow_many_files, end_on_sigterm
from report import RESULTS, Results, figure, parser_of
from scale_load import measure
from scale_model import Model, fitted
from scale_plot import save_plot
from scale_rows import ROLES, Row, Size, rows_of
from servers import temporary_directory

#: What all numbers of servers and shards are measured with.
CONNECTIONS, ENVIRONMENTS, HIDDEN = 16, 8, 256

#: What tells the costs of connections, messages, steps, evaluations, updates and bytes apart:
#: connections, environments on each, size of the layers, whether gradients are made, and how many
#: steps a second each connection offers, if it does not step as fast as it is answered.
OTHERS: list[tuple[int, int, int, bool] | tuple[int, int, int, bool, float]] = [
    (4, 8, 256, True), (16, 1, 256, True), (32, 8, 64, True), (16, 8, 512, True),
    (4, 1, 64, False), (16, 8, 64, False), (32, 1, 256, False), (8, 32, 256, False),
    (200, 1, 256, True), (1000, 1, 256, True), (1000, 1, 64, False),
    (200, 1, 64, True, 1.0), (1000, 1, 64, True, 1.0), (2000, 1, 64, True, 1.0),
]  # fmt: skip

#: Clusters: connections, servers, shards; with an environment on each connection.
CLUSTERS = list(itertools.product((10, 100, 1000, 10_000), (1, 4, 16, 64), (1, 2, 4)))

#: Of an environment's own step, where a cluster is predicted: a simulator at 100 steps a second.
ENVIRONMENT_S = 0.01


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    allow_many_files()
    rows = [] if arguments.rows is None else rows_of(arguments.rows)
    if arguments.rows is None or arguments.complete or arguments.again:
        rows = measured(arguments, {row.size: row for row in rows})
        print(f"\nwritten to {arguments.json}")
    print("\nthe fastest of each size")
    print_rows(rows)
    most = max(row.size.servers for row in rows)
    model = fitted([row for row in rows if row.size.servers < most])
    print_costs(model)
    print_predictions(model, rows, most)
    print_clusters(model)
    if arguments.plot is not None:
        save_plot(arguments.plot, model, rows, most, ENVIRONMENT_S)
        print(f"\nplotted into {arguments.plot}")


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--grid", action="store_true",
                        help="no other sizes: numbers of servers and shards alone")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=2.0, help="of a window (default 2)")
    parser.add_argument("--windows", type=int, default=5,
                        help="one after the other; the fastest is shown (default 5)")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=1,
                        help="of all; the fastest row of each size counts")  # fmt: skip
    parser.add_argument("--json", type=Path, default=RESULTS / "scale.json",
                        help="where rows are written (default %(default)s)")  # fmt: skip
    parser.add_argument("--from", type=Path, dest="rows", metavar="FILE",
                        help="take the rows of this file, and measure nothing")  # fmt: skip
    parser.add_argument("--complete", action="store_true",
                        help="measure what that file lacks")  # fmt: skip
    parser.add_argument("--again", action="store_true",
                        help="measure all again; the faster row of each size counts")  # fmt: skip
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture")
    arguments = parser.parse_args()
    if arguments.rows is None and len(set(arguments.servers)) == 1:
        parser.error("--servers: give several numbers; the model of the others predicts the most")
    return arguments


def sizes(servers: Sequence[int], shards: Sequence[int], grid_alone: bool) -> Iterator[Size]:
    """Yield what is measured; the others than the grid with fewer servers than the most."""
    for count, parts in itertools.product(servers, shards):
        yield Size(count, parts, CONNECTIONS, ENVIRONMENTS, HIDDEN, learns=True)
    if grid_alone:
        return
    for count, other in itertools.product(sorted(servers)[:-1], OTHERS):
        yield Size(count, min(shards), *other)


def measured(arguments: argparse.Namespace, known: Mapping[Size, Row]) -> list[Row]:
    """Measure in each round, and return the fastest row of each size; known ones count, too.

    The file has all that were measured so far, also if something fails.
    """
    fastest = dict(known)
    for number in range(1, arguments.rounds + 1):
        print(f"\nround {number} of {arguments.rounds}\n{HEADINGS}", flush=True)
        for size in sizes(arguments.servers, arguments.shards, arguments.grid):
            if arguments.complete and size in known:
                continue
            with temporary_directory() as name:
                try:
                    row = measure(size, arguments.seconds, arguments.windows, Path(name))
                except Unmeasured as reason:
                    print(f"{start_of(size)}  skipped: {reason}", flush=True)
                    continue
            print(as_line(row), flush=True)
            if size not in fastest or fastest[size].steps < row.steps:
                fastest[size] = row
                save(fastest.values(), arguments.json)
    return list(fastest.values())


def save(rows: Iterable[Row], path: Path) -> None:
    results = Results(path)
    for row in rows:
        results.add(row)


def print_rows(rows: Sequence[Row]) -> None:
    print(HEADINGS)
    for row in rows:
        print(as_line(row))


def print_costs(model: Model) -> None:
    print("\ncosts, in microseconds of a core (of a byte and of a multiplication: picoseconds)")
    for role, works in {**model.costs, "a worker's time": model.of_worker}.items():
        words = [
            f"{work} {cost * (1e12 if work in SMALL else 1e6):,.3g}" for work, cost in works.items()
        ]
        print(f"  {role:<16} {', '.join(words)}")
    words = [f"{name} {mib:,.3g}" for name, mib in model.memory.items()]
    print(f"  MiB of a server  {', '.join(words)}")
    (connections,) = model.messages_per_batch.exponents
    print(
        f"  messages of an evaluation: {model.messages_per_batch.factor:.2f}"
        f" x connections^{connections:.2f}"
    )
    environments, connections, shards = model.steps_per_update.exponents
    print(
        f"  steps of an update: {model.steps_per_update.factor:.2f}"
        f" x environments on a connection^{environments:.2f}"
        f" x connections^{connections:.2f} x shards^{shards:.2f}"
    )


def print_predictions(model: Model, rows: Sequence[Row], most: int) -> None:
    print(f"\nrows with {most} servers were not fitted\n{'':<41}{'steps/s':>10}{'model':>10}")
    for row in rows:
        if row.size.rate:  # no part of it is busy all the time
            continue
        model_steps = model.steps_of_this_machine(row.size)
        print(
            f"{start_of(row.size)}{row.steps:>10,.0f}{model_steps:>10,.0f}"
            f"{model_steps / row.steps - 1:>+8.0%}"
        )


def print_clusters(model: Model) -> None:
    print(
        f"\na cluster with a machine for each server and shard, one environment of "
        f"{ENVIRONMENT_S * 1e3:g} ms on a connection\n"
        f"{'connections':>11}{'servers':>9}{'shards':>8}{'MiB':>8}{'steps/s':>11}  what limits it"
    )
    for connections, servers, shards in CLUSTERS:
        size = Size(servers, shards, connections, 1, HIDDEN, learns=True)
        limits = model.limits_of_a_cluster(size, ENVIRONMENT_S)
        least = min(limits, key=lambda part: limits[part])
        print(
            f"{connections:>11,}{servers:>9}{shards:>8}"
            f"{model.mib_of_a_server(size):>8,.0f}{limits[least]:>11,.0f}  {least}"
        )


#: Works that cost less than a microsecond.
SMALL = ("byte", "multiplication")

HEADINGS = (
    f"{'rlx':>3}{'shards':>7}{'conn':>6}{'envs':>6}{'rate':>5}{'hidden':>7}{'learns':>7}"
    f"{'steps/s':>10}"
    f"{'p50 ms':>8}{'p99 ms':>8}{'echo/s':>10}{'batches/s':>10}{'updates/s':>10}  "
    f"cores and MiB: {', '.join(ROLES)}"
)


def start_of(size: Size) -> str:
    rate = f"{size.rate:g}" if size.rate else "-"
    return (
        f"{size.servers:>3}{size.shards:>7}{size.connections:>6}{size.environments:>6}{rate:>5}"
        f"{size.hidden:>7}{'yes' if size.learns else 'no':>7}"
    )


def as_line(row: Row) -> str:
    cores = " ".join(f"{row.cores[role]:.2f}" for role in ROLES)
    mib = " ".join(f"{row.mib[role]:.0f}" for role in ROLES)
    return (
        f"{start_of(row.size)}{row.steps:>10,.0f}{row.p50_ms:>8.2f}{row.p99_ms:>8.2f}"
        f"{row.echo_steps:>10,.0f}{figure(row.batches):>10}{figure(row.updates):>10}  "
        f"{cores} | {mib}"
    )


if __name__ == "__main__":
    main()
