"""A client of the soak, whose counts of steps lie in a file and outlive it.

python benchmarks/soak_client.py URL FILE SEED STEPS_A_SECOND
"""

import mmap
import random
import sys
from pathlib import Path

from relaax.client import Backoff, Client, Failure
from relaax.processes.stop_signal import Stop, StopSignal

EPISODE_STEPS = 20

#: A server that does not answer for so long is left.
TIMEOUT_S = 5.0

#: The counts, in their order: steps whose reward was sent, those that were answered, episodes that
#: came to their end, and connections that were lost.
SENT, ANSWERED, EPISODES, LOSSES = range(4)

_BYTES = 4 * 8


class ClientCounts:
    """The counts of a client, in a file that it shares with its reader."""

    def __init__(self, path: Path) -> None:
        with path.open("a+b") as file:
            file.truncate(_BYTES)
            self._memory = mmap.mmap(file.fileno(), _BYTES)
        self._cells = memoryview(self._memory).cast("q")

    def __getitem__(self, count: int) -> int:
        return self._cells[count]

    def add(self, count: int) -> None:
        """Count one more."""
        self._cells[count] += 1


def main() -> None:
    url, path, seed, rate = sys.argv[1:]
    stop = StopSignal()
    counts = ClientCounts(Path(path))
    numbers = random.Random(int(seed))  # noqa: S311 - no secret
    backoff = Backoff(initial_s=0.1, max_s=1.0, attempts=1_000_000)
    with Client(url, timeout_s=TIMEOUT_S, reconnect=backoff, wait=stop.wait) as client:
        while not stop.wait(0):
            try:
                _play(client, counts, numbers, stop, 1 / float(rate))
            except Failure as failure:
                counts.add(LOSSES)
                print(failure, flush=True)
                if failure.training_is_over:
                    return


def _play(
    client: Client, counts: ClientCounts, numbers: random.Random, stop: Stop, pause_s: float
) -> None:
    """Play an episode; a step is counted as sent before it is."""
    client.init(_state(numbers))
    for number in range(EPISODE_STEPS):
        if stop.wait(pause_s):
            return
        counts.add(SENT)
        if number < EPISODE_STEPS - 1:
            client.send(1.0, _state(numbers))
        else:
            client.reset(1.0)
        counts.add(ANSWERED)
    counts.add(EPISODES)


def _state(numbers: random.Random) -> list[float]:
    return [numbers.gauss(0, 1) for _ in range(4)]


if __name__ == "__main__":
    main()
