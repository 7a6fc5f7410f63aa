"""How fast experience is stored and drawn: steps appended and items sampled a second.

    python benchmarks/replay.py
    python benchmarks/replay.py --quick
    python benchmarks/replay.py --what sample --shapes images --batches 256 --shards 1
    python benchmarks/replay.py --reverb ~/reverb --install-reverb

``small`` transitions have 17 numbers of observation and 6 of action; ``images`` have stacks of four
frames of 84x84, of which each is stored once. All replays are full before they are measured.

``process`` is a replay in the program's own process, as a learner has it without replay servers.
``grpc`` are replay servers, each a process of its own, whose large samples come through shared
memory; with ``wire`` they are sent. Each writer is a process too, with 16 environments, and divides
them among the servers, as workers do; a batch comes from all servers together, as a learner's does.

``sb3`` is Stable-Baselines3's buffer in the program's own process, full of as many small
transitions, or of 8,000 steps of images. ``reverb`` is Reverb's server and its data set of
TensorFlow, which ``--reverb DIR`` looks for in a Python environment of its own.

``MB/s`` are observations, next observations and actions; ``memcpy`` copies as many bytes in this
process, and is measured right before them.
"""

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from processes import end_on_sigterm
from replay_load import append_rate, copying, drawing, drawing_from, rate_of, storing
from replay_reverb import PeerMissing, reverb_python, reverb_rates
from replay_servers import replay_servers
from replay_shapes import SHAPES, TABLE, Shape, fill, replay_of, spec_of, spread_priorities
from report import Results, add_json, figure, parser_of

from relaax.processes.allocator import keep_memory
from relaax.replay.client.sampler import ShardedSampler
from relaax.replay.specs import SelectorName

WHAT = ("append", "sample")
PATHS = ("process", "grpc", "wire", "sb3", "reverb")
SELECTORS: tuple[SelectorName, ...] = ("uniform", "prioritized")

#: Steps whose bytes are copied to be compared with appended ones.
COPIED_STEPS = 256

#: The most seconds for memcpy.
COPY_S = 0.5


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    shape: str
    path: str
    selector: str
    shards: int
    #: Of steps; 0 where items are drawn.
    writers: int
    #: Items at once; 0 where steps are appended.
    batch: int
    per_s: float
    item_bytes: int
    memcpy_per_s: float


@dataclass(frozen=True)
class Case:
    """What is stored and drawn, and where."""

    shape: Shape
    path: str
    selector: SelectorName = "uniform"
    shards: int = 0

    @property
    def step_bytes(self) -> int:
        """The size of a step as it is stored."""
        return self.shape.schema.bytes


class Table:
    """Measures, prints rows, and keeps them."""

    def __init__(self, json: Path, seconds: float) -> None:
        self._results = Results(json)
        self._seconds = seconds
        print(HEADINGS, flush=True)

    def append(self, case: Case, writers: int, rate: Callable[[], float]) -> None:
        """Add the rate of writers beside memcpy's."""
        memcpy = self._memcpy(COPIED_STEPS, case.step_bytes)
        self._add("append", case, writers, 0, rate(), case.step_bytes, memcpy)

    def sample(self, case: Case, batch: int, call: Callable[[], int]) -> None:
        """Add the rate at which ``call`` draws batches."""
        item_bytes = case.shape.item_bytes
        memcpy = self._memcpy(batch, item_bytes)
        self._add("sample", case, 0, batch, self.rate(call), item_bytes, memcpy)

    def reached(self, what: str, case: Case, batch: int, per_s: float, item_bytes: int) -> None:
        """Add a rate that another program measured."""
        memcpy = self._memcpy(batch, item_bytes)
        sizes = (1, 0) if what == "append" else (0, batch)
        self._add(what, case, *sizes, per_s, item_bytes, memcpy)

    def rate(self, call: Callable[[], int]) -> float:
        """Return how many items a second ``call`` reaches."""
        return rate_of(call, self._seconds)

    def close(self) -> None:
        """Say where the rows are."""
        self._results.close()

    def _memcpy(self, items: int, item_bytes: int) -> float:
        return rate_of(copying(items, item_bytes), min(self._seconds, COPY_S))

    def _add(
        self,
        what: str,
        case: Case,
        writers: int,
        batch: int,
        per_s: float,
        item_bytes: int,
        memcpy_per_s: float,
    ) -> None:
        row = Row(what, case.shape.name, case.path, case.selector, case.shards, writers, batch,
                  per_s, item_bytes, memcpy_per_s)  # fmt: skip
        print(as_line(row), flush=True)
        self._results.add(row)


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    keep_memory()  # as learners do
    table = Table(arguments.json, arguments.seconds)
    for shape in (SHAPES[name] for name in arguments.shapes):
        for selector in arguments.selectors:
            measure_process(Case(shape, "process", selector), arguments, table)
            for shards in arguments.shards:
                measure_servers(Case(shape, "grpc", selector, shards), arguments, table)
        for measure in (measure_sb3, measure_reverb):
            try:
                measure(shape, arguments, table)
            except PeerMissing as missing:
                print(missing, flush=True)
    table.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--what", nargs="+", choices=WHAT, default=WHAT)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--paths", nargs="+", choices=PATHS, default=PATHS)
    parser.add_argument("--selectors", nargs="+", choices=SELECTORS, default=SELECTORS)
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 256, 1024])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 3, 5])
    parser.add_argument("--capacity", type=int, help="steps, instead of a million or 60,000")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure (default 2)")
    parser.add_argument("--reverb", type=Path, metavar="DIR", help="environment with Reverb")
    parser.add_argument("--install-reverb", action="store_true", help="make it if it is missing")
    parser.add_argument("--quick", action="store_true", help="a short run, to see that it works")
    add_json(parser, "replay")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.capacity = 0.1, 4096
        arguments.writers, arguments.batches, arguments.shards = [2], [64], [2]
    return arguments


def measure_process(case: Case, arguments: argparse.Namespace, table: Table) -> None:
    """Measure a replay in this process, which is full."""
    if case.path not in arguments.paths:
        return
    replay = replay_of(case.shape, case.selector, arguments.capacity or case.shape.capacity)
    fill(replay, arguments.capacity or case.shape.capacity)
    if "append" in arguments.what:
        table.append(case, 1, lambda: table.rate(storing(replay)))
    if "sample" in arguments.what:
        if case.selector == "prioritized":
            spread_priorities(replay)
        for batch in arguments.batches:
            table.sample(case, batch, drawing(replay, batch))


def measure_servers(case: Case, arguments: argparse.Namespace, table: Table) -> None:
    """Measure replay servers, which are full."""
    paths = [path for path in ("grpc", "wire") if path in arguments.paths]
    if not paths:
        return
    capacity = arguments.capacity or case.shape.capacity
    with replay_servers(case.shape, case.selector, case.shards, capacity) as urls:
        for writers in arguments.writers if "append" in arguments.what else ():
            rate = partial(append_rate, urls, case.shape, writers, arguments.seconds)
            table.append(case, writers, rate)
        for path, batch in product(paths, arguments.batches if "sample" in arguments.what else ()):
            with closing(sampler_of(case, urls, shares_memory=path == "grpc")) as sampler:
                table.sample(replace(case, path=path), batch, drawing_from(sampler, batch))


def sampler_of(case: Case, urls: Sequence[str], shares_memory: bool) -> ShardedSampler:
    """Return what a learner draws with."""
    spec = spec_of(case.shape, case.selector, case.shape.capacity)
    random = np.random.default_rng(7)
    return ShardedSampler(urls, TABLE, spec, random, shares_memory=shares_memory)


def measure_sb3(shape: Shape, arguments: argparse.Namespace, table: Table) -> None:
    """Measure Stable-Baselines3's buffer."""
    if "sb3" not in arguments.paths:
        return
    try:  # it takes long, and processes that are started import this module too
        from replay_sb3 import CAPACITIES, BaselinesBuffer
    except ImportError as error:
        raise PeerMissing(f"Stable-Baselines3 is left out: {error}") from error
    case = Case(shape, "sb3")
    buffer = BaselinesBuffer(shape, arguments.capacity or CAPACITIES[shape.name])
    if "append" in arguments.what:
        table.append(case, 1, lambda: table.rate(buffer.store))
    for batch in arguments.batches if "sample" in arguments.what else ():
        table.sample(case, batch, buffer.drawing(batch))


def measure_reverb(shape: Shape, arguments: argparse.Namespace, table: Table) -> None:
    """Measure Reverb, where an environment with it is named."""
    if "reverb" not in arguments.paths or arguments.reverb is None:
        return
    python = reverb_python(arguments.reverb, arguments.install_reverb)
    for selector, batch in product(arguments.selectors, arguments.batches):
        for found in reverb_rates(python, shape.name, selector, batch, arguments.seconds):
            if found["what"] in arguments.what:
                case = Case(shape, "reverb", selector, 1)
                table.reached(found["what"], case, batch, found["per_s"], found["item_bytes"])


HEADINGS = (
    f"{'what':7}{'shape':7}{'path':8}{'selector':12}{'shards':>6}{'writers':>8}{'batch':>6}"
    f"{'items/s':>11}{'MB/s':>8}{'memcpy/s':>13}{'of it':>7}"
)


def as_line(row: Row) -> str:
    return (
        f"{row.what:7}{row.shape:7}{row.path:8}{row.selector:12}{count(row.shards):>6}"
        f"{count(row.writers):>8}{count(row.batch):>6}{figure(row.per_s):>11}"
        f"{row.per_s * row.item_bytes / 1e6:>8,.0f}{figure(row.memcpy_per_s):>13}"
        f"{row.per_s / row.memcpy_per_s:>7.1%}"
    )


def count(number: int) -> str:
    return f"{number:,}" if number else ""


if __name__ == "__main__":
    main()
