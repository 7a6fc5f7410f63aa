"""How a training scales: RLX servers behind HAProxy, shards of the parameter server, and a model.

    python benchmarks/scale.py
    python benchmarks/scale.py --servers 1 2 4 --shards 1 2 4 --rounds 3
    python benchmarks/scale.py --from benchmarks/results/scale.json --plot docs/images/scale.png

Each row is a training (DA3C, two dense layers) of bundled clients behind a real HAProxy with the
configuration of ``deploy/haproxy``: steps a second and latency of a message, the echo limit of the
same clients behind the same HAProxy, cores in use and MiB by role. All of it runs on this machine.

Then a cost model is fitted to the rows with fewer RLX servers than the most (``scale_model``). It
says what the others should have reached; and what clusters would reach in which each server and
each shard has a machine of its own: 10 to 10,000 connections on 1 to 64 servers.
"""

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from cells import Unmeasured
from processes import end_on_sigterm
from report import RESULTS, Results, figure, parser_of
from scale_load import measure
from scale_model import Model, fitted
from scale_plot import save_plot
from scale_rows import ROLES, Row, Size
from servers import temporary_directory

#: What all numbers of servers and shards are measured with.
CONNECTIONS, ENVIRONMENTS, HIDDEN = 16, 8, 256

#: What tells the costs of messages, steps, evaluations, updates and bytes apart: connections,
#: environments on each, size of the layers, and whether gradients are made.
OTHERS = [
    (4, 8, 256, True), (16, 1, 256, True), (32, 8, 64, True), (16, 8, 512, True),
    (4, 1, 64, False), (16, 8, 64, False), (32, 1, 256, False), (8, 32, 256, False),
]  # fmt: skip

#: Clusters: connections, servers, shards; with an environment on each connection.
CLUSTERS = list(itertools.product((10, 100, 1000, 10_000), (1, 4, 16, 64), (1, 2, 4)))

#: Of an environment's own step, where a cluster is predicted: a simulator at 100 steps a second.
ENVIRONMENT_S = 0.01


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    if arguments.rows is None:
        rows = measured(arguments)
    else:
        rows = read(arguments.rows)
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
    parser.add_argument("--seconds", type=float, default=2.0, help="of a window (default 2)")
    parser.add_argument("--windows", type=int, default=5,
                        help="one after the other; the fastest is shown (default 5)")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=1,
                        help="of all; the fastest row of each size counts")  # fmt: skip
    parser.add_argument("--json", type=Path, default=RESULTS / "scale.json",
                        help="where rows are written (default %(default)s)")  # fmt: skip
    parser.add_argument("--from", type=Path, dest="rows", metavar="FILE",
                        help="take the rows of this file, and measure nothing")  # fmt: skip
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture")
    return parser.parse_args()


def sizes(servers: Sequence[int], shards: Sequence[int]) -> Iterator[Size]:
    """Yield what is measured; the others than the grid with fewer servers than the most."""
    for count, parts in itertools.product(servers, shards):
        yield Size(count, parts, CONNECTIONS, ENVIRONMENTS, HIDDEN, learns=True)
    for count, other in itertools.product(sorted(servers)[:-1], OTHERS):
        yield Size(count, min(shards), *other)


def measured(arguments: argparse.Namespace) -> list[Row]:
    """Measure all sizes in each round, and return the fastest row of each."""
    fastest: dict[Size, Row] = {}
    for number in range(1, arguments.rounds + 1):
        print(f"\nround {number} of {arguments.rounds}\n{HEADINGS}", flush=True)
        for size in sizes(arguments.servers, arguments.shards):
            with temporary_directory() as name:
                try:
                    row = measure(size, arguments.seconds, arguments.windows, Path(name))
                except Unmeasured as reason:
                    print(f"{start_of(size)}  skipped: {reason}", flush=True)
                    continue
            print(as_line(row), flush=True)
            if size not in fastest or fastest[size].steps < row.steps:
                fastest[size] = row
    results = Results(arguments.json)
    for row in fastest.values():
        results.add(row)
    results.close()
    print("\nthe fastest of each size")
    print_rows(list(fastest.values()))
    return list(fastest.values())


def read(path: Path) -> list[Row]:
    return [
        Row(**{**each, "size": Size(**each["size"])})
        for each in json.loads(path.read_text(encoding="utf-8"))
    ]


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
    print(f"\nrows with {most} servers were not fitted\n{'':<43}{'steps/s':>10}{'model':>10}")
    for row in rows:
        model_steps = model.steps_of_this_machine(row.size)
        print(
            f"{start_of(row.size)}{row.steps:>10,.0f}{model_steps:>10,.0f}"
            f"{model_steps / row.steps - 1:>+8.0%}"
        )


def print_clusters(model: Model) -> None:
    print(
        f"\na cluster with a machine for each server and shard, one environment of "
        f"{ENVIRONMENT_S * 1e3:g} ms on a connection\n"
        f"{'connections':>11}{'servers':>9}{'shards':>8}{'steps/s':>11}  what limits it"
    )
    for connections, servers, shards in CLUSTERS:
        size = Size(servers, shards, connections, 1, HIDDEN, learns=True)
        limits = model.limits_of_a_cluster(size, ENVIRONMENT_S)
        least = min(limits, key=lambda part: limits[part])
        print(f"{connections:>11,}{servers:>9}{shards:>8}{limits[least]:>11,.0f}  {least}")


#: Works that cost less than a microsecond.
SMALL = ("byte", "multiplication")

HEADINGS = (
    f"{'rlx':>3}{'shards':>7}{'conn':>6}{'envs':>6}{'hidden':>7}{'learns':>7}{'steps/s':>10}"
    f"{'p50 ms':>8}{'p99 ms':>8}{'echo/s':>10}{'batches/s':>10}{'updates/s':>10}  "
    f"cores and MiB: {', '.join(ROLES)}"
)


def start_of(size: Size) -> str:
    return (
        f"{size.servers:>3}{size.shards:>7}{size.connections:>6}{size.environments:>6}"
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
