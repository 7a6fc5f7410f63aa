"""A step passes few files: those that ``docs/architecture.md`` lists, counted with a profiler."""

import re
import sys
import threading
from pathlib import Path

import numpy as np
from learning_parts import SMALL, SMALL_COLUMNS, Kept, small_policy
from served_worker import serve_batches

import relaax
from relaax.client import VectorClient
from relaax.learning.actor import Actor
from relaax.learning.distributions import Categorical
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.preprocessor import Preprocessor
from relaax.learning.rollouts import RolloutStore

PACKAGE = Path(relaax.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"

ENVIRONMENTS = 4

#: Once in a turn: the worker's times, and its report to the RLX server.
ONCE_IN_A_TURN = {
    "interval_metrics.py",
    "server/rlx_server/handover.py",
    "server/rlx_server/worker/inbox.py",
    "server/rlx_server/worker/measurements.py",
}


class Files:
    """The package's files whose code runs in a thread meanwhile."""

    def __init__(self):
        self.found = set()

    def __enter__(self):
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _note(self, frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            self.found.add(path.relative_to(PACKAGE).as_posix())


class TransportTo:
    """Opens connections to a worker that serves the test."""

    def __init__(self, served):
        self._served = served

    def connect(self, address, timeout_s):
        return self._served.connect()


def actor():
    return Actor(
        preprocessor=Preprocessor(SMALL.observation_shape, history_len=1),
        policy=small_policy(),
        model=NumpyPolicy(SMALL, Categorical(2)),
        distribution=Categorical(2),
        columns=SMALL_COLUMNS,
        rollouts=RolloutStore(1000, SMALL_COLUMNS),
        experience=Kept(),
        random=np.random.default_rng(0),
    )


def files_of_a_step(served):
    """Return the files that the client and the worker pass for one step, after some others."""
    client = VectorClient("localhost:1", ENVIRONMENTS, transport=TransportTo(served))
    states = np.zeros((ENVIRONMENTS, 2), np.float32)
    rewards = np.zeros(ENVIRONMENTS)
    of_client, of_worker = Files(), Files()

    def play():
        client.init(states)
        for _ in range(3):
            client.send(rewards, states)
        with of_client:
            actions.append(client.send(rewards, states))

    actions = []
    playing = threading.Thread(target=play)
    playing.start()
    messages = []
    answer = served.worker._responder.answer
    served.worker._responder.answer = lambda *what: messages.append(what) or answer(*what)
    served.turn_until(lambda: len(messages) == 4)
    with of_worker:
        served.turn_until(lambda: len(messages) == 5)
    playing.join(20)
    assert actions[0].shape == (ENVIRONMENTS,)
    return of_client.found | of_worker.found - ONCE_IN_A_TURN


def documented_files():
    """Return the files of the table under "The way of a step"."""
    section = PAGE.read_text().split("## The way of a step")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    table = rows[: 1 + next(i for i, row in enumerate(rows) if "numpy_policy.py" in row)]
    return {re.findall(r"`([\w/]+\.py)`", row)[0] for row in table if ".py`" in row}


def test_a_step_passes_the_fifteen_files_that_the_page_lists():
    served = serve_batches(actor())
    try:
        files = files_of_a_step(served)
    finally:
        served.close()
    assert files == documented_files()
    assert len(files) <= 15
