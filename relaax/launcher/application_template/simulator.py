"""The environment: a simulator, and the program that connects it to RELAAX.

    python environment.py --rlx-server localhost:7001

Replace ``Simulator`` by your own: keep ``restart`` and ``apply``, and describe states and actions
in training.yaml. This one moves a point onto a target. The program needs numpy and relaax.client.
"""

import argparse
import random
import sys

from relaax.client import Backoff, Client, Failure
from relaax.client.seeds import seeds_of_this_program

#: CHANGE: what the server must choose, else it refuses; in training.yaml this is action_size.
ACTIONS = {"type": "Discrete", "n": 3}

STEP = 0.1
MAX_STEPS = 50


class Simulator:
    """A point and a target between -1 and 1.

    Action 0 moves the point to the left, 1 leaves it where it is, 2 moves it to the right.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secret

    def restart(self) -> list[float]:
        """Begin an episode and return its first state."""
        self._point, self._target = self._random.uniform(-1, 1), self._random.uniform(-1, 1)
        self._steps = 0
        return [self._point, self._target]

    def apply(self, action: int) -> tuple[float, list[float], bool, bool]:
        """Move; return reward, state, whether the episode is over, and whether time is out."""
        self._point += (action - 1) * STEP
        self._steps += 1
        is_reached = abs(self._point - self._target) < STEP
        reward = 1.0 if is_reached else -0.02
        return reward, [self._point, self._target], is_reached, self._steps >= MAX_STEPS


def play(client: Client, simulator: Simulator) -> float:
    """Play one episode and return the sum of its rewards."""
    action = client.init(simulator.restart())
    while True:
        reward, state, is_over, is_out_of_time = simulator.apply(action)
        if is_over:
            return client.reset(reward)
        if is_out_of_time:
            return client.truncate(reward, state)
        action = client.send(reward, state)


def main() -> int:
    """Play until the training is over; return the exit status."""
    parser = argparse.ArgumentParser(description="Play with the actions of an RLX server.")
    parser.add_argument("--rlx-server", required=True, metavar="HOST:PORT")
    parser.add_argument("--seed", type=int, metavar="S", help="of the simulator")
    arguments = parser.parse_args()
    simulator = Simulator(seeds_of_this_program(arguments.seed).of(0))
    with Client(arguments.rlx_server, action_space=ACTIONS, reconnect=Backoff()) as client:
        while True:
            try:
                play(client, simulator)
            except Failure as failure:  # the server has lost this episode
                if failure.is_final:
                    print(f"stopping: {failure}")
                    return 0 if failure.training_is_over else 1
                print(f"starting a new episode: {failure}")
            except KeyboardInterrupt:
                print("stopped")
                return 0


if __name__ == "__main__":
    sys.exit(main())
