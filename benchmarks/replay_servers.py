"""Replay servers that are measured: real ones, each a process of its own."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from processes import kill, start_child
from replay_shapes import SHAPES, Shape, fill, replay_of, spread_priorities
from servers import free_address

from relaax.net import channel_options
from relaax.processes.allocator import keep_memory
from relaax.replay.service import ReplayServicer, method_handlers
from relaax.replay.specs import SelectorName

START_DEADLINE_S = 120.0
THREADS = 32


@contextmanager
def replay_servers(
    shape: Shape, selector: SelectorName, count: int, capacity: int
) -> Iterator[list[str]]:
    """Run ``count`` servers, full with ``capacity`` steps together, and yield their addresses."""
    context = multiprocessing.get_context("spawn")
    urls = [free_address() for _ in range(count)]
    ready = [context.Event() for _ in urls]
    share = capacity // count
    children = [
        start_child(context, serve, url, shape.name, selector, share, event)
        for url, event in zip(urls, ready, strict=True)
    ]
    try:
        if not all(event.wait(START_DEADLINE_S) for event in ready):
            raise RuntimeError("a replay server did not start")
        yield urls
    finally:
        kill(children)


def serve(url: str, shape: str, selector: SelectorName, capacity: int, ready: Any) -> None:
    """Serve a replay until this process is killed."""
    keep_memory()
    replay = replay_of(SHAPES[shape], selector, capacity)
    fill(replay, capacity)
    if selector == "prioritized":
        spread_priorities(replay)
    server = grpc.server(ThreadPoolExecutor(THREADS), options=channel_options.server())
    server.add_generic_rpc_handlers((method_handlers(ReplayServicer(replay)),))
    server.add_insecure_port(url)
    server.start()
    ready.set()
    server.wait_for_termination()
