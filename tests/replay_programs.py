"""A replay server of images, and a client of it, each to be run in a process of its own."""

from concurrent import futures
from multiprocessing.connection import Connection

import grpc
import numpy as np

from relaax.replay.client.stub import ReplayStub
from relaax.replay.replay import Replay
from relaax.replay.schema import Column, Schema
from relaax.replay.service import ReplayServicer, method_handlers
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.storage import START, TERMINATED
from relaax.replay.views import Transitions, Windows

IMAGES = Schema(
    {
        "observation": Column(np.dtype(np.uint8), (84, 84)),
        "action": Column(np.dtype(np.int64)),
        "reward": Column(np.dtype(np.float32)),
    }
)
EPISODES, EPISODE_STEPS = 8, 25


def image_replay() -> Replay:
    """A replay of some episodes; each that is made draws the same items in the same order."""
    view = Transitions(steps=3, discount=0.9, stack=4)
    tables = {
        "transitions": TableSpec(view),
        "windows": TableSpec(Windows(5, burn_in=2), selector="prioritized"),
    }
    replay = ReplaySpec(IMAGES, 1024, tables).make(np.random.default_rng(1), lease_s=600.0)
    replay.open_writer("writer", IMAGES)
    random = np.random.default_rng(2)
    for episode in range(EPISODES):
        rows = {
            "observation": random.integers(0, 255, (EPISODE_STEPS, 84, 84), np.uint8),
            "action": random.integers(0, 4, EPISODE_STEPS),
            "reward": random.standard_normal(EPISODE_STEPS, np.float32),
        }
        flags = np.zeros(EPISODE_STEPS, np.uint8)
        flags[0], flags[-1] = START, TERMINATED
        replay.append("writer", 0, episode * EPISODE_STEPS, rows, flags)
    return replay


def serve_images(pipe: Connection, port: int = 0) -> None:
    """Send the port, and serve until the pipe is closed."""
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((method_handlers(ReplayServicer(image_replay())),))
    pipe.send(server.add_insecure_port(f"127.0.0.1:{port}"))
    server.start()
    wait_until_closed(pipe)
    server.stop(0).wait()


def draw_images(pipe: Connection, port: int) -> None:
    """Hold samples, and send how many, until the pipe is closed."""
    stub = ReplayStub(f"127.0.0.1:{port}")
    samples = [stub.sample("transitions", 32, 5.0) for _ in range(3)]
    pipe.send(len(samples))
    wait_until_closed(pipe)


def wait_until_closed(pipe: Connection) -> None:
    """Wait for the other end to be closed, as it is with its process."""
    try:
        pipe.recv()
    except EOFError:
        return
