"""A step passes few files: those that ``docs/architecture.md`` lists, counted with a profiler."""

import queue
import threading

import numpy as np
import pytest
from learning_parts import SMALL, SMALL_COLUMNS, Kept, small_policy
from served_worker import serve_batches
from ways import Files, documented

from relaax.acting.actor import Actor
from relaax.acting.preprocessor import Preprocessor
from relaax.client import VectorClient
from relaax.learning.distributions import Categorical
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.rollouts import RolloutStore

ENVIRONMENTS = 4

#: Once in a turn: the worker's times, and its report to the RLX server; and the look at its first
#: thousand turns.
ONCE_IN_A_TURN = {
    "telemetry/interval_metrics.py",
    "telemetry/kept_counts.py",
    "server/rlx_server/tally.py",
    "telemetry/histograms.py",
    "server/rlx_server/handover.py",
    "server/rlx_server/lobby.py",
    "configuration/first_look.py",
    "server/rlx_server/worker/measurements.py",
}


class TransportTo:
    """Opens connections to a worker that serves the test, and notes what clients have sent."""

    def __init__(self, served):
        self._served = served
        self.sent = queue.Queue()

    def connect(self, address, timeout_s):
        connection = self._served.connect()
        send = connection.send

        def noted(payload):
            send(payload)
            self.sent.put(payload)

        connection.send = noted
        return connection


def actor():
    return Actor(
        preprocessor=Preprocessor((2,), history_len=1),
        policy=small_policy(),
        model=NumpyPolicy(SMALL, Categorical(2)),
        distribution=Categorical(2),
        columns=SMALL_COLUMNS,
        rollouts=RolloutStore(1000, SMALL_COLUMNS),
        experience=Kept(),
        random=np.random.default_rng(0),
    )


class Player(threading.Thread):
    """A client that has taken some steps, takes one more when it is asked to, and is watched."""

    def __init__(self, transport):
        super().__init__()
        self._client = VectorClient("localhost:1", ENVIRONMENTS, transport=transport)
        self.is_prepared, self.goes_on = threading.Event(), threading.Event()
        self.files, self.actions = Files(), None

    def run(self):
        states, rewards = np.zeros((ENVIRONMENTS, 2), np.float32), np.zeros(ENVIRONMENTS)
        self._client.init(states)
        for _ in range(3):
            self._client.send(rewards, states)
        self.is_prepared.set()
        self.goes_on.wait(20)
        with self.files:
            self.actions = self._client.send(rewards, states)


def files_of_a_step(served, connections):
    """Return the files that clients and worker pass for one step of each, in one turn."""
    transport, of_worker = TransportTo(served), Files()
    players = [Player(transport) for _ in range(connections)]
    for player in players:
        player.start()
    served.turn_until(lambda: all(player.is_prepared.is_set() for player in players))
    transport.sent.queue.clear()
    for player in players:
        player.goes_on.set()
    for _ in players:
        transport.sent.get(timeout=20)
    with of_worker:
        served.turn()
    for player in players:
        player.join(20)
        assert player.actions.shape == (ENVIRONMENTS,)
    found = of_worker.found.union(*(player.files.found for player in players))
    return found - ONCE_IN_A_TURN


@pytest.mark.parametrize("connections", [1, 3])
def test_a_step_passes_the_files_that_the_page_lists(connections):
    served = serve_batches(actor())
    try:
        files = files_of_a_step(served, connections)
    finally:
        served.close()
    assert files == documented("The way of a step")
    assert len(files) <= 21
