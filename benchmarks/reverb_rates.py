"""How fast Reverb stores and draws, in a Python environment of its own; see replay.py.

    REVERB_VENV/bin/python benchmarks/reverb_rates.py small 256 --selector uniform --seconds 2

Prints two rows as JSON: steps inserted and items drawn a second. Items are drawn as TensorFlow's
data sets have them, in batches. An item is two steps, or five frames: those of both stacks of four.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import reverb  # type: ignore[import-not-found, unused-ignore]
import tensorflow as tf

TABLE = "all"
EPISODE_STEPS = 500

#: By shape: the columns of a step, and how many steps an item has.
SHAPES: dict[str, tuple[dict[str, Any], int]] = {
    "small": (
        {
            "observation": np.zeros(17, np.float32),
            "action": np.zeros(6, np.float32),
            "reward": np.float32(0),
        },
        2,
    ),
    "images": (
        {
            "observation": np.zeros((84, 84), np.uint8),
            "action": np.int64(0),
            "reward": np.float32(0),
        },
        5,
    ),
}


def main() -> None:
    arguments = parse()
    step, length = SHAPES[arguments.shape]
    server = serve(arguments.selector, arguments.capacity)
    client = reverb.Client(f"localhost:{server.port}")
    inserts = inserting(client, step, length)
    fill_until(inserts, arguments.filled)
    report("append", rate(lambda: next(inserts), arguments.seconds), step_bytes(step))
    batches = drawing(client, arguments.batch, step, length)
    drawn = rate(lambda: next(batches), arguments.seconds)
    report("sample", drawn, length * step_bytes(step))
    batches.close()
    inserts.close()  # its writer flushes, and would wait for a server that is gone
    server.stop()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shape", choices=list(SHAPES))
    parser.add_argument("batch", type=int)
    parser.add_argument("--selector", choices=["uniform", "prioritized"], default="uniform")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--capacity", type=int, default=100_000, help="items (default 100,000)")
    parser.add_argument("--filled", type=int, default=20_000, help="before it is measured")
    return parser.parse_args()


def serve(selector: str, capacity: int) -> Any:
    sampler = (
        reverb.selectors.Prioritized(0.6)
        if selector == "prioritized"
        else reverb.selectors.Uniform()
    )
    table = reverb.Table(
        TABLE, sampler, reverb.selectors.Fifo(), capacity, reverb.rate_limiters.MinSize(1)
    )
    return reverb.Server([table])


def inserting(client: Any, step: dict[str, Any], length: int) -> Generator[int, None, None]:
    """Insert an item at every step that ends one; yield how many steps were written."""
    random = np.random.default_rng(1)
    steps = [{name: noise(value, random) for name, value in step.items()} for _ in range(256)]
    while True:
        with client.trajectory_writer(num_keep_alive_refs=length) as writer:
            for place in range(EPISODE_STEPS):
                writer.append(steps[place % len(steps)])
                if place >= length - 1:
                    item = {name: column[-length:] for name, column in writer.history.items()}
                    writer.create_item(TABLE, 1.0 + place % 3, item)
                    writer.flush(block_until_num_items=1000)
                yield 1
            writer.end_episode()


def noise(value: Any, random: np.random.Generator) -> Any:
    array = np.asarray(value)
    if array.dtype == np.uint8:
        return random.integers(0, 255, array.shape, np.uint8)
    return random.standard_normal(array.shape).astype(array.dtype)


def fill_until(inserts: Iterator[int], count: int) -> None:
    for _ in range(count):
        next(inserts)


def drawing(
    client: Any, batch: int, step: dict[str, Any], length: int
) -> Generator[int, None, None]:
    """Yield the size of each batch, which lies in numpy arrays then."""
    values = {name: np.asarray(value) for name, value in step.items()}
    dataset = reverb.TrajectoryDataset(
        server_address=client.server_address,
        table=TABLE,
        dtypes={name: value.dtype for name, value in values.items()},
        shapes={name: tf.TensorShape((length, *value.shape)) for name, value in values.items()},
        max_in_flight_samples_per_worker=2 * batch,
    )
    for _ in dataset.batch(batch, drop_remainder=True).prefetch(1).as_numpy_iterator():
        yield batch


def rate(call: Callable[[], int], seconds: float) -> float:
    for _ in range(3):
        call()
    began, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        count += call()
    return count / spent


def step_bytes(step: dict[str, Any]) -> int:
    return sum(np.asarray(value).nbytes for value in step.values())


def report(what: str, per_s: float, item_bytes: int) -> None:
    print(json.dumps({"what": what, "per_s": per_s, "item_bytes": item_bytes}), flush=True)


if __name__ == "__main__":
    main()
