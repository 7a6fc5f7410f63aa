"""Returns of simple controllers in mpe2's simple_spread: what a learnt policy is compared with.

python benchmarks/spread_controllers.py --games 200
"""

import argparse
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from mpe2 import simple_spread_v3

Array: TypeAlias = npt.NDArray[Any]
Observations: TypeAlias = Mapping[str, Array]

#: An agent brakes for so much of its velocity, and stands still so near its landmark.
BRAKE, NEAR = 0.6, 0.05
STAY, LEFT, RIGHT, DOWN, UP = range(5)


def landmarks(observation: Array) -> Array:
    """Return where the landmarks are, from the agent: float32 [3, 2]."""
    return observation[4:10].reshape(3, 2)


def towards(place: Array, observation: Array) -> int:
    """Return the action that brings an agent to a place."""
    x, y = place - BRAKE * observation[:2]
    if max(abs(x), abs(y)) < NEAR:
        return STAY
    if abs(x) > abs(y):
        return RIGHT if x > 0 else LEFT
    return UP if y > 0 else DOWN


def nearest(seen: Observations) -> dict[str, int]:
    """Send each agent to the landmark that is nearest to it."""
    goals = {name: min(landmarks(own), key=np.linalg.norm) for name, own in seen.items()}
    return {name: towards(goals[name], own) for name, own in seen.items()}


def fixed(seen: Observations) -> dict[str, int]:
    """Send each agent to a landmark of its own, always the same one."""
    return {
        name: towards(landmarks(own)[place], own) for place, (name, own) in enumerate(seen.items())
    }


def assigned(seen: Observations) -> dict[str, int]:
    """Send the agents to the landmarks so that the sum of the distances is the least."""
    far = np.array([np.linalg.norm(landmarks(own), axis=1) for own in seen.values()])
    best = min(permutations(range(3)), key=lambda order: float(far[range(3), order].sum()))
    return {
        name: towards(landmarks(own)[place], own)
        for place, (name, own) in zip(best, seen.items(), strict=True)
    }


def returns(controller: Callable[[Observations], dict[str, int]], games: int) -> Array:
    """Return the sum of all agents' rewards of each game."""
    environment = simple_spread_v3.parallel_env()
    found = np.zeros(games)
    for game in range(games):
        seen, _ = environment.reset(seed=game)
        while environment.agents:
            seen, rewards, *_ = environment.step(controller(seen))
            found[game] += sum(rewards.values())
    return found


def main() -> None:
    """Print the mean return of each controller, and its standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=200)
    games = parser.parse_args().games
    for controller in (nearest, fixed, assigned):
        found = returns(controller, games)
        print(f"{controller.__name__:10} {found.mean():6.1f} ± {found.std() / games**0.5:.1f}")


if __name__ == "__main__":
    main()
