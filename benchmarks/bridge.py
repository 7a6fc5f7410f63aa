"""How fast parameters cross the bridge: fetches and updates a second against their number.

    python benchmarks/bridge.py
    python benchmarks/bridge.py --sizes 681000 --workers 1 8

A real parameter server (DA3C's store and RMSProp behind gRPC, a process of its own) is asked by
worker processes over loopback. ``fetch`` is GetValues with the whole vector, ``update`` is
ApplyGradients that brings the new values back; milliseconds are those of one call. Beside them,
from the same run: ``copy`` is a memory copy of the vector, ``rmsprop`` the optimiser's step alone,
``echo`` a gRPC call that returns the same bytes without looking at them. With several workers the
version is checked in the end: no update may be lost.
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from servers import free_address

from relaax.common.native_memory import keep_memory

DEFAULT_JSON = Path(__file__).parent / "results" / "bridge.json"
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
    workers: int
    fetch: Calls
    update: Calls
    echo: Calls
    copy_ms: float
    rmsprop_ms: float
    lost_updates: int


def main() -> None:
    arguments = parse()
    print(HEADINGS)
    rows = []
    for size in arguments.sizes:
        for workers in arguments.workers:
            rows.append(measure(size, workers, arguments.seconds))
            print(as_line(rows[-1]), flush=True)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    print(f"\nwritten to {arguments.json}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="parameters")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each figure (default 3)")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON, help="default %(default)s")
    return parser.parse_args()


def measure(size: int, workers: int, seconds: float) -> Row:
    with serving(serve_parameters, size) as url:
        fetch, _ = drive(fetching, url, size, workers, seconds)
        update, counts = drive(updating, url, size, workers, seconds)
        lost = sum(counts) - version_at(url)
    with serving(serve_echo, size) as url:
        echo, _ = drive(echoing, url, size, workers, seconds)
    return Row(
        size, workers, fetch, update, echo, copy_ms(size), rmsprop_ms(size), lost_updates=lost
    )


@contextmanager
def serving(serve: Callable[[str, int, Any], None], size: int) -> Iterator[str]:
    """Run a server in a process of its own; it is forked before anything here starts gRPC."""
    context = multiprocessing.get_context("spawn")
    url, ready = free_address(), context.Event()
    process = context.Process(target=serve, args=(url, size, ready), daemon=True)
    process.start()
    try:
        if not ready.wait(60):
            raise RuntimeError("a server did not start")
        yield url
    finally:
        process.terminate()
        process.join()


def serve_parameters(url: str, size: int, ready: Any) -> None:
    from servers import REPOSITORY

    from relaax.algorithm_base import NullMetrics
    from relaax.common.bridge import BridgeControl
    from relaax.common.parameters import ParameterStore, RMSProp
    from relaax.common.parameters.rmsprop import RMSPropSettings
    from relaax.server.common.algorithm_loader import load_algorithm

    da3c = load_algorithm(REPOSITORY / "algorithms" / "da3c").module
    store = ParameterStore(
        np.zeros(size, np.float32), RMSProp(size, RMSPropSettings()), lambda global_t: 1e-4
    )
    service = da3c.parameter_server.service.ParameterServerService(store, NullMetrics())
    keep_memory()  # as the command relaax-parameter-server does
    server = BridgeControl().start_parameter_server(url, service)
    ready.set()
    time.sleep(3600)
    server.stop(0)


def serve_echo(url: str, size: int, ready: Any) -> None:
    import grpc

    from relaax.common.bridge import channel_options

    def echo(request: bytes, context: Any) -> bytes:
        return request

    server = grpc.server(ThreadPoolExecutor(16), options=channel_options.SERVER)
    handler = grpc.method_handlers_generic_handler(
        "benchmark", {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    )
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(url)
    server.start()
    ready.set()
    server.wait_for_termination()


def drive(
    make_call: Callable[[str, int], Callable[[], Any]],
    url: str,
    size: int,
    workers: int,
    seconds: float,
) -> tuple[Calls, list[int]]:
    """Let workers call for ``seconds``; return what they reached and how often each called."""
    context = multiprocessing.get_context("spawn")
    start = context.Event()
    pipes, processes = [], []
    for _ in range(workers):
        ours, theirs = context.Pipe()
        arguments = (make_call, url, size, seconds, start, theirs)
        process = context.Process(target=run_worker, args=arguments, daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    for pipe in pipes:
        if not pipe.poll(60):
            raise RuntimeError("a worker did not start")
        pipe.recv()
    start.set()
    durations = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join()
    counted = [len(each) for each in durations]
    measured = np.concatenate([each[WARM_UP_CALLS:] for each in durations]) * 1e3
    per_s = len(measured) / seconds
    return Calls(per_s, float(measured.mean()), float(np.percentile(measured, 99))), counted


WARM_UP_CALLS = 5


def run_worker(
    make_call: Callable[[str, int], Callable[[], Any]],
    url: str,
    size: int,
    seconds: float,
    start: Any,
    pipe: Any,
) -> None:
    keep_memory()  # as the compute process does
    call = make_call(url, size)
    durations = [timed(call) for _ in range(WARM_UP_CALLS)]
    pipe.send("ready")
    start.wait()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        durations.append(timed(call))
    pipe.send(np.array(durations))


def timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def fetching(url: str, size: int) -> Callable[[], Any]:
    from relaax.common.bridge import Bridge

    return Bridge(url).get_values


def updating(url: str, size: int) -> Callable[[], Any]:
    from relaax.common.bridge import Bridge

    bridge, gradient = Bridge(url), np.full(size, 1e-3, np.float32)
    version = bridge.get_values().version
    return lambda: bridge.synchronize(gradient, 1, version)


def echoing(url: str, size: int) -> Callable[[], Any]:
    import grpc

    from relaax.common.bridge import channel_options

    call = grpc.insecure_channel(url, options=channel_options.CLIENT).unary_unary("/benchmark/Echo")
    data = bytes(4 * size)
    return lambda: call(data)


def version_at(url: str) -> int:
    from relaax.common.bridge import Bridge

    return Bridge(url).get_values().version.number


def copy_ms(size: int) -> float:
    vector = np.zeros(size, np.float32)
    return best_ms(vector.copy)


def rmsprop_ms(size: int) -> float:
    from relaax.common.parameters import RMSProp
    from relaax.common.parameters.rmsprop import RMSPropSettings

    optimizer = RMSProp(size, RMSPropSettings())
    parameters, gradient = np.zeros(size, np.float32), np.ones(size, np.float32)
    return best_ms(lambda: optimizer.apply(parameters, gradient, 1e-4))


def best_ms(call: Callable[[], Any]) -> float:
    return min(timed(call) for _ in range(10)) * 1e3


HEADINGS = (
    f"{'parameters':>11}{'workers':>8}{'fetch/s':>9}{'ms':>8}{'update/s':>10}{'ms':>8}{'p99':>8}"
    f"{'echo/s':>9}{'ms':>8}{'copy ms':>9}{'rmsprop':>9}{'lost':>6}"
)


def as_line(row: Row) -> str:
    return (
        f"{row.parameters:>11,}{row.workers:>8}{row.fetch.per_s:>9,.0f}{row.fetch.mean_ms:>8.2f}"
        f"{row.update.per_s:>10,.0f}{row.update.mean_ms:>8.2f}{row.update.p99_ms:>8.2f}"
        f"{row.echo.per_s:>9,.0f}{row.echo.mean_ms:>8.2f}{row.copy_ms:>9.2f}"
        f"{row.rmsprop_ms:>9.2f}{row.lost_updates:>6}"
    )


if __name__ == "__main__":
    main()
