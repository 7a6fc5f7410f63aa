"""How fast parameters cross the bridge: fetches and updates a second against their number.

    python benchmarks/bridge.py
    python benchmarks/bridge.py --sizes 681000 --workers 1 8
    python benchmarks/bridge.py --sizes 681000 --no-keep-memory
    python benchmarks/bridge.py --sizes 2000000 20000000 --shards 1 2 4

A real parameter server (parameters and RMSProp behind gRPC, a process of its own) is called by
worker processes over loopback. ``fetch`` is Pull of the whole vector, ``update`` is
Push of a gradient that returns the new values; milliseconds are of one call, and calls a second
are those of all workers, from the begin of the first call to the end of the last. Beside them, from
the same run: ``copy`` is a memory copy of the vector, ``rmsprop`` the optimiser's step alone,
``echo`` a gRPC call that returns the same bytes and does nothing else. ``lost`` is the number of
updates that the version does not count at the end; it must be 0. Server and workers keep the memory
that they have freed (``relaax.processes.allocator.keep_memory``), as RELAAX does;
``--no-keep-memory`` measures without that.

With ``--shards`` the parameter server is that of DA3C, with a network of about that size, in as
many processes of the command ``relaax-parameter-server``, also where it is one. Nothing is fetched
then: values that a worker has are not sent again.
"""

import argparse
import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from launch import Launch
from processes import end_on_sigterm, kill, start_child
from report import Results, add_json, figure, parser_of
from servers import free_address, running_shards, temporary_directory

from relaax.algorithm_base import Gradient, NullMetrics, ParameterLink
from relaax.net import channel_options
from relaax.parameters import BridgeControl
from relaax.parameters.optimizers import RMSProp, RMSPropSettings
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.processes.allocator import FEW_POOLS, keep_memory

SIZES = [10_000, 100_000, 681_000, 2_000_000, 20_000_000]


@dataclass(frozen=True)
class Calls:
    """What workers reached together, and how long a call took."""

    per_s: float
    mean_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    parameters: int
    shards: int | None
    workers: int
    #: None where a parameter server of the command is called.
    fetch: Calls | None
    update: Calls
    echo: Calls
    copy_ms: float
    rmsprop_ms: float
    lost_updates: int


@dataclass(frozen=True)
class Load:
    """What one figure is measured with."""

    size: int
    #: Processes of the command relaax-parameter-server; None for a server without an algorithm.
    shards: int | None
    workers: int
    seconds: float
    #: Whether all processes keep the memory that they have freed, as those of RELAAX do.
    keeps_memory: bool


WARM_UP_CALLS = 5

#: Of each worker, even if they take longer than the measurement.
FEWEST_CALLS = 3

START_DEADLINE_S = 60.0

#: Makes the call that is measured, for a server's address and a number of parameters.
MakeCall = Callable[[str, int], Callable[[], Any]]


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    results = Results(arguments.json)
    print(HEADINGS, flush=True)
    for size, shards, workers in itertools.product(
        arguments.sizes, arguments.shards, arguments.workers
    ):
        row = measure(Load(size, shards, workers, arguments.seconds, arguments.keep_memory))
        print(as_line(row), flush=True)
        results.add(row)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="parameters")
    parser.add_argument(
        "--shards", type=int, nargs="+", default=[None], help="processes of the parameter server"
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each figure (default 3)")
    parser.add_argument("--no-keep-memory", dest="keep_memory", action="store_false",
                        help="measure without keep_memory")  # fmt: skip
    add_json(parser, "bridge")
    return parser.parse_args()


def measure(load: Load) -> Row:
    with serving_all_shards(load) as url:
        fetch = drive(fetching, url, load)[0] if load.shards is None else None
        update, updates = drive(updating, url, load)
        lost = updates - version_at(url)
    with serving(serve_echo, load) as url:
        echo, _ = drive(echoing, url, load)
    return Row(
        load.size,
        load.shards,
        load.workers,
        fetch,
        update,
        echo,
        copy_ms(load.size),
        rmsprop_ms(load.size),
        lost_updates=lost,
    )


@contextmanager
def serving_all_shards(load: Load) -> Iterator[str]:
    """Run a parameter server, or all shards of one, and yield its address, or theirs."""
    if load.shards is None:
        with serving(serve_parameters, load) as url:
            yield url
        return
    # Two layers whose weights are about as many as are asked for.
    layers = [1000, max(load.size // 1000, 1)]
    algorithm = {"action_size": 2, "state_size": [4], "hidden_layers": layers}
    with (
        temporary_directory() as directory,
        running_shards(Path(directory), algorithm, load.shards, Launch()) as urls,
    ):
        yield urls


@contextmanager
def serving(serve: Callable[[str, Load, Any], None], load: Load) -> Iterator[str]:
    """Run a server in a process of its own, and yield its address."""
    context = multiprocessing.get_context("spawn")
    url, ready = free_address(), context.Event()
    process = start_child(context, serve, url, load, ready)
    try:
        if not ready.wait(START_DEADLINE_S):
            raise RuntimeError("a server did not start")
        yield url
    finally:
        kill([process])


def serve_parameters(url: str, load: Load, ready: Any) -> None:
    store = ParameterStore(
        np.zeros(load.size, np.float32),
        RMSProp(load.size, RMSPropSettings()),
        lambda global_t: 1e-4,
    )
    service = ParameterService(store, NullMetrics())
    if load.keeps_memory:
        keep_memory(FEW_POOLS)  # as the command relaax-parameter-server does
    server = BridgeControl().start_parameter_server(url, service)
    ready.set()
    time.sleep(3600)
    server.stop(0)


def serve_echo(url: str, load: Load, ready: Any) -> None:
    def echo(request: bytes, context: Any) -> bytes:
        return request

    server = grpc.server(ThreadPoolExecutor(16), options=channel_options.server())
    handler = grpc.method_handlers_generic_handler(
        "benchmark", {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    )
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(url)
    server.start()
    ready.set()
    server.wait_for_termination()


def drive(make_call: MakeCall, url: str, load: Load) -> tuple[Calls, int]:
    """Let workers call; return what they reached, and the number of all their calls."""
    context = multiprocessing.get_context("spawn")
    start = context.Event()
    pipes, processes = [], []
    try:
        for _ in range(load.workers):
            ours, theirs = context.Pipe()
            processes.append(start_child(context, run_worker, make_call, url, load, start, theirs))
            theirs.close()
            pipes.append(ours)
        for pipe in pipes:
            if not pipe.poll(START_DEADLINE_S):
                raise RuntimeError("a worker did not start")
            pipe.recv()
        start.set()
        times = [pipe.recv() for pipe in pipes]
    finally:
        kill(processes)
    durations = np.concatenate([np.diff(each) for each in times]) * 1e3
    spent = max(each[-1] for each in times) - min(each[0] for each in times)
    calls = Calls(len(durations) / spent, durations.mean(), float(np.percentile(durations, 99)))
    return calls, len(durations) + load.workers * WARM_UP_CALLS


def run_worker(make_call: MakeCall, url: str, load: Load, start: Any, pipe: Any) -> None:
    """Report when the first call began and when each ended."""
    if load.keeps_memory:
        keep_memory()  # as workers do
    call = make_call(url, load.size)
    for _ in range(WARM_UP_CALLS):
        call()
    pipe.send("ready")
    start.wait()
    times = [time.monotonic()]
    while times[-1] - times[0] < load.seconds or len(times) <= FEWEST_CALLS:
        call()
        times.append(time.monotonic())
    pipe.send(np.array(times))


def timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def fetching(url: str, size: int) -> Callable[[], Any]:
    return _bridge(url).pull


def updating(url: str, size: int) -> Callable[[], Any]:
    bridge = _bridge(url)
    values = bridge.pull()
    gradient = np.full_like(values.vector, 1e-3, np.float32)
    return lambda: bridge.push(Gradient(gradient, values.version, 1))


def echoing(url: str, size: int) -> Callable[[], Any]:
    call = grpc.insecure_channel(url, options=channel_options.CLIENT).unary_unary("/benchmark/Echo")
    data = bytes(4 * size)
    return lambda: call(data, wait_for_ready=True)


def version_at(url: str) -> int:
    return _bridge(url).pull().version.number


def _bridge(url: str) -> ParameterLink:
    return BridgeControl().parameter_server_stub(url)


def copy_ms(size: int) -> float:
    vector = np.zeros(size, np.float32)
    return best_ms(vector.copy)


def rmsprop_ms(size: int) -> float:
    optimizer = RMSProp(size, RMSPropSettings())
    parameters, gradient = np.zeros(size, np.float32), np.ones(size, np.float32)
    return best_ms(lambda: optimizer.apply(parameters, gradient, 1e-4))


def best_ms(call: Callable[[], Any]) -> float:
    return min(timed(call) for _ in range(10)) * 1e3


HEADINGS = (
    f"{'parameters':>11}{'shards':>7}{'workers':>8}{'fetch/s':>9}{'ms':>8}{'update/s':>10}{'ms':>8}{'p99':>8}"
    f"{'echo/s':>9}{'ms':>8}{'copy ms':>9}{'rmsprop':>9}{'lost':>6}"
)


def as_line(row: Row) -> str:
    fetched = f"{'-':>9}{'-':>8}"
    if row.fetch is not None:
        fetched = f"{figure(row.fetch.per_s):>9}{row.fetch.mean_ms:>8.2f}"
    return (
        f"{row.parameters:>11,}{row.shards or '-':>7}{row.workers:>8}{fetched}"
        f"{figure(row.update.per_s):>10}{row.update.mean_ms:>8.2f}{row.update.p99_ms:>8.2f}"
        f"{figure(row.echo.per_s):>9}{row.echo.mean_ms:>8.2f}{row.copy_ms:>9.2f}"
        f"{row.rmsprop_ms:>9.2f}{row.lost_updates:>6}"
    )


if __name__ == "__main__":
    main()
