"""Play a PettingZoo game of two agents between policies, and against one that acts at random.

    relaax-rlx-server --config default.yaml --exploit --bind localhost:7001 &
    python benchmarks/games.py --env classic/connect_four-v3 --games 200 \
        --players self_play=localhost:7001 independent=localhost:7002,localhost:7003

Each player has an RLX server, or one for each seat, and takes its most probable actions. Each pair
of players, of which "random" is one more, plays so many games from each seat. The first --opening
moves of a game are random ones, the same ones from both seats: otherwise all games of two players
would be one. It prints the shares of games that the first player of a pair has won, drawn and lost.
"""

import argparse
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from relaax.client import Backoff
from relaax.client.action_masks import ACTION_MASK
from relaax.client.multi_agent_client import AgentReport, MultiAgentClient
from relaax.client.pettingzoo_environments import PettingZooFactory

RANDOM = "random"


class RandomSeat:
    """Acts at random in one seat."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def begin(self) -> None:
        """Do nothing."""

    def act(self, report: AgentReport) -> int:
        """Return one of the actions that the mask allows."""
        return int(self._random.choice(np.flatnonzero(report.observation[ACTION_MASK])))

    def end(self, report: AgentReport) -> None:
        """Do nothing."""


class ServedSeat:
    """Acts in one seat by an RLX server."""

    def __init__(self, address: str, agent: str, game: Any, resources: ExitStack) -> None:
        spaces = game.spaces_of(game.agents)
        client = MultiAgentClient(
            address,
            game.agents,
            evaluate="deterministic",
            reconnect=Backoff(),
            observation_space=spaces.observation_space,
            action_space=spaces.action_space,
        )
        self._client = resources.enter_context(client)
        self._key = (0, agent)
        self._is_new = True

    def begin(self) -> None:
        """Begin a game."""
        self._is_new = True

    def act(self, report: AgentReport) -> int:
        """Return the server's action."""
        if self._is_new:  # the opening was not its own
            self._is_new = False
            first = replace(report, starts=True, reward=0.0)
            return int(self._client.init({self._key: first})[self._key])
        return int(self._client.send({self._key: report})[self._key])

    def end(self, report: AgentReport) -> None:
        """Let the server know that the game is over."""
        if not self._is_new:
            self._client.send({self._key: report})


def played(game: Any, seats: Mapping[str, Any], opening: list[float]) -> dict[str, float]:
    """Return each agent's return of one game; numbers from 0 to 1 choose its first moves."""
    totals, moves = dict.fromkeys(seats, 0.0), list(opening)
    for seat in seats.values():
        seat.begin()
    reports = game.restart()
    while True:
        for name, report in reports.items():
            totals[name] += report.reward
            if report.is_terminated or report.is_truncated:
                seats[name].end(report)
        acting = [name for name, each in reports.items() if each.observation is not None]
        acting = [name for name in acting if not reports[name].is_terminated]
        if not acting:
            return totals
        name, report = acting[0], reports[acting[0]]
        if moves:
            allowed = np.flatnonzero(report.observation[ACTION_MASK])
            action = int(allowed[int(moves.pop(0) * len(allowed))])
        else:
            action = seats[name].act(report)
        reports = game.apply({name: action})


def main() -> None:
    """Play, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--players", nargs="+", required=True, metavar="NAME=SERVER[,SERVER]")
    parser.add_argument("--env", required=True)
    parser.add_argument("--games", type=int, default=200, help="from each seat")
    parser.add_argument("--opening", type=int, default=2, help="so many random moves")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    openings = random.random((arguments.games, arguments.opening)).tolist()
    game = PettingZooFactory(arguments.env, {})(arguments.seed)
    players = dict(each.split("=", 1) for each in arguments.players)
    for first, second in combinations([*players, RANDOM], 2):
        for order in (game.agents, game.agents[::-1]):
            with ExitStack() as resources:

                def seat(player: str, agent: str, stack: ExitStack = resources) -> Any:
                    if player == RANDOM:
                        return RandomSeat(random)
                    servers = players[player].split(",")
                    address = servers[game.agents.index(agent) % len(servers)]
                    return ServedSeat(address, agent, game, stack)

                seats = {order[0]: seat(first, order[0]), order[1]: seat(second, order[1])}
                signs = Counter(
                    int(np.sign(played(game, seats, opening)[order[0]])) for opening in openings
                )
            shares = ", ".join(
                f"{name} {signs[sign] / arguments.games:.1%}"
                for name, sign in (("won", 1), ("drawn", 0), ("lost", -1))
            )
            print(f"{first} as {order[0]} against {second}: {shares}", flush=True)


if __name__ == "__main__":
    main()
