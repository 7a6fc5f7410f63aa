"""An RLX server in a real container: clients are refused before the kernel kills."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import psutil
import pytest
from containers import MIB, NEEDS_RUNC, Container
from processes import COMMANDS, SMALL_DA3C, Training
from worker_modes import SHARED

from relaax.client import Backoff, Client, Failure, VectorClient

pytestmark = [pytest.mark.integration, NEEDS_RUNC]

VECTOR = np.zeros(4)
PICTURES = np.zeros((32, 84, 84, 4), np.float32)

#: More clients than a container of these tests has room for.
TOO_MANY = 20


def in_container(training: Training, limit_mib: int, *flags: str) -> Container:
    command = [str(COMMANDS / "relaax-rlx-server"), "--config", str(training.yaml), *flags]
    return Container(training, "rlx-server", command, limit_mib)


def until_refused(stack: ExitStack, start: Callable[[], Client | VectorClient]) -> Iterator[Client]:
    """Yield clients that play, until one is refused."""
    for _ in range(TOO_MANY):
        client = stack.enter_context(start())
        try:
            client.init(PICTURES if isinstance(client, VectorClient) else VECTOR)
        except Failure:
            return
        yield client
    pytest.fail(f"{TOO_MANY} clients were admitted")


def test_a_worker_for_each_connection_is_not_forked_beyond_the_containers_limit(
    training: Training,
) -> None:
    """A machine with far more memory would admit all of them."""
    limit_mib = 700
    training.start_parameter_server()
    with in_container(training, limit_mib) as container, ExitStack() as stack:
        server = container.process
        server.says("serving at ")
        url = training.rlx_server_url
        playing = list(until_refused(stack, lambda: Client(url, timeout_s=60)))
        assert playing
        figures = server.says(r"refusing .*: (\d+) MiB of memory are available and .* needs (\d+)")
        assert int(figures[1]) < int(figures[2]) < psutil.virtual_memory().available / MIB
        for client in playing:
            for _ in range(20):  # of which rollouts are learnt from
                client.send(1.0, VECTOR)
        assert container.memory_mib() < limit_mib
        # When one leaves, or those that came have grown less than was feared, another finds room.
        playing[0].disconnect()
        patient = Backoff(initial_s=0.2, max_s=0.5, attempts=200)
        with Client(url, timeout_s=60, reconnect=patient) as late:
            late.init(VECTOR)
        for client in playing[1:]:
            client.send(1.0, VECTOR)
        assert container.killed_by_the_kernel() == 0
        assert "was killed by" not in server.output()


@SHARED
def test_shared_workers_admit_no_more_environments_than_the_container_has_room_for(
    training: Training,
) -> None:
    limit_mib = 1300
    training.configure({**SMALL_DA3C, "state_size": list(PICTURES[0].shape), "episode_len": 20})
    training.start_parameter_server()
    # A connection needs what two rollouts take: docs/operations.md, "Memory".
    with in_container(training, limit_mib) as container, ExitStack() as stack:
        server = container.process
        server.says("serving at ")
        url = training.rlx_server_url
        playing = list(until_refused(stack, lambda: VectorClient(url, 32, timeout_s=60)))
        assert playing
        server.says(r"refusing .*: \d+ MiB of memory are available and a connection needs ")
        for _ in range(45):  # two rollouts of each environment
            for client in playing:
                client.send(np.ones(len(PICTURES)), PICTURES)
        assert container.memory_mib() < limit_mib
        assert container.killed_by_the_kernel() == 0
        assert "was killed by" not in server.output()
