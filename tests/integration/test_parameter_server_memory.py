"""The memory of a real parameter server grows little with its workers, and with what they send."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import psutil
import pytest
from processes import SMALL_DA3C, Training

from relaax.parameters import BridgeControl

pytestmark = pytest.mark.integration

#: A network of about a million parameters: a gradient has 4 MB.
HIDDEN_LAYERS = [1000, 1000]
GRADIENT_BYTES = 4 * 1_000_000

WORKERS, UPDATES = 8, 30


def push_gradients(url: str) -> None:
    """Do what a worker does, without an environment."""
    bridge = BridgeControl().parameter_server_stub(url)
    values = bridge.get_values()
    gradient = np.full_like(values.vector, 1e-6)
    for _ in range(UPDATES):
        values = bridge.synchronize(gradient, 1, values.version)
    bridge.close()


def test_workers_take_the_memory_of_what_they_send_and_little_more(training: Training):
    """What each thread of the server has once needed would stay in a pool of its own."""
    training.configure({**SMALL_DA3C, "hidden_layers": HIDDEN_LAYERS})
    process = psutil.Process(training.start_parameter_server().pid)
    before = process.memory_info().rss

    def more_memory() -> int:
        with ThreadPoolExecutor(WORKERS) as threads:
            list(threads.map(push_gradients, [training.parameter_server_url] * WORKERS))
        return process.memory_info().rss - before

    # How much is held just now varies, what stays in pools is held each time.
    held = min(more_memory() for _ in range(3))
    # For each worker a gradient on its way in, values on their way out, and copies of both.
    assert held < 5 * WORKERS * GRADIENT_BYTES


def test_what_unpacks_to_hundreds_of_megabytes_is_not_unpacked(training: Training):
    """For 200 KB that were sent, three times, it took 16 GB when they were unpacked and read."""
    server = training.start_parameter_server()
    before = psutil.Process(server.pid).memory_info().rss
    with grpc.insecure_channel(
        training.parameter_server_url, [("grpc.max_send_message_length", -1)]
    ) as channel:
        call = channel.unary_unary("/relaax.ParameterServer/Push")
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as refused:
                call(bytes(200 * 1024 * 1024), compression=grpc.Compression.Gzip, timeout=60)
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert peak_rss(server.pid) - before < 50 * 1024 * 1024


def peak_rss(pid: int) -> int:
    """Return the most memory that a process has ever had, in bytes."""
    (line,) = [
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) * 1024
