"""How fast experience is stored and drawn: steps appended and items sampled a second.

python benchmarks/replay.py
python benchmarks/replay.py --quick
python benchmarks/replay.py --shapes images --paths grpc --batches 256
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

from processes import end_on_sigterm
from replay_servers import replay_servers
from replay_shapes import SHAPES, TABLE
from report import Results, add_json, figure, parser_of

from relaax.allocator import keep_memory
from relaax.replay.client.stub import ReplayStub


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    shape: str
    batch: int
    per_s: float
    mb_per_s: float


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    keep_memory()
    results = Results(arguments.json)
    print(f"{'what':8}{'shape':8}{'batch':>7}{'items/s':>12}{'MB/s':>10}")
    for shape in (SHAPES[name] for name in arguments.shapes):
        with replay_servers(shape, "uniform", 1, shape.capacity, filled=True) as (url,):
            for batch in arguments.batches:
                rate = rate_of(sampling(url, batch), arguments.seconds)
                row = Row("sample", shape.name, batch, rate, rate * shape.item_bytes / 1e6)
                print(as_line(row), flush=True)
                results.add(row)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 256, 1024])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure (default 2)")
    add_json(parser, "replay")
    return parser.parse_args()


def sampling(url: str, batch: int) -> Callable[[], int]:
    stub = ReplayStub(url)
    return lambda: len(stub.sample(TABLE, batch, 1.0).keys)


def rate_of(call: Callable[[], int], seconds: float) -> float:
    """Return how many items a second ``call``, which returns its own number of them, reaches."""
    for _ in range(3):
        call()
    began, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        count += call()
    return count / spent


def as_line(row: Row) -> str:
    return f"{row.what:8}{row.shape:8}{row.batch:>7}{figure(row.per_s):>12}{row.mb_per_s:>10,.0f}"


if __name__ == "__main__":
    main()
