"""Play a PettingZoo game of two agents against one that acts at random, from both sides.

    relaax-rlx-server --config config/ppo_tictactoe.yaml --exploit &
    python benchmarks/against_random.py --rlx-server localhost:7001 \
        --env classic/tictactoe-v3 --games 500

The policy of the RLX server plays as many games as the first agent as it does as the second one. It
is evaluated: nothing is learnt. Where each agent has a policy of its own, each has a server, too,
and plays with --agent. It prints the shares of games that were won, drawn and lost, and
how many moves were forbidden by the mask of actions.
"""

import argparse
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from relaax.client import Backoff
from relaax.client.action_masks import ACTION_MASK
from relaax.client.multi_agent_client import AgentReport, MultiAgentClient
from relaax.client.pettingzoo_environments import PettingZooFactory


class OneSide:
    """A game in which ``agent`` plays by the server, and the other agent at random."""

    def __init__(self, game: Any, agent: str, random: np.random.Generator) -> None:
        self._game, self._agent, self._random = game, agent, random
        #: Moves that the mask of actions did not allow.
        self.forbidden = 0

    def restart(self) -> AgentReport:
        """Begin a game; return the agent's first report."""
        report = self._until_its_turn(self._game.restart())
        if report is None:
            raise RuntimeError(f"the game was over before {self._agent} had a turn")
        return report

    def apply(self, action: int) -> AgentReport | None:
        """Take the agent's action; return its next report."""
        self.forbidden += not self._mask[action]
        return self._until_its_turn(self._game.apply({self._agent: action}))

    def _until_its_turn(self, reports: Mapping[str, AgentReport]) -> AgentReport | None:
        while True:
            acting = [name for name, each in reports.items() if each.observation is not None]
            if self._agent in reports:
                own = reports[self._agent]
                if own.observation is not None:
                    self._mask = own.observation[ACTION_MASK]
                return own
            if not acting:
                return None
            mask = reports[acting[0]].observation[ACTION_MASK]
            action = int(self._random.choice(np.flatnonzero(mask)))
            reports = self._game.apply({acting[0]: action})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rlx-server", required=True)
    parser.add_argument("--env", required=True)
    parser.add_argument("--games", type=int, default=500, help="from each side")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--agent", type=int, choices=(0, 1), help="as this agent alone, whose policy the server has"
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    for index in (0, 1) if arguments.agent is None else (arguments.agent,):
        game = PettingZooFactory(arguments.env, {})(arguments.seed)
        side = OneSide(game, game.agents[index], random)
        spaces = game.spaces_of(game.agents)
        client = MultiAgentClient(
            arguments.rlx_server,
            game.agents,
            evaluate="deterministic",
            reconnect=Backoff(),
            observation_space=spaces.observation_space,
            action_space=spaces.action_space,
        )
        with client:
            results = Counter(_play(side, client, game.agents[index], arguments.games))
        shares = ", ".join(
            f"{name} {results[sign] / arguments.games:.1%}"
            for name, sign in (("won", 1), ("drawn", 0), ("lost", -1))
        )
        print(f"{game.agents[index]}: {shares}; forbidden moves: {side.forbidden}")


def _play(side: OneSide, client: MultiAgentClient, agent: str, games: int) -> list[int]:
    """Return the sign of each game's return."""
    signs = []
    for _ in range(games):
        report: AgentReport | None = side.restart()
        total = 0.0
        while report is not None:
            total += report.reward
            ask = client.init if report.starts else client.send
            answer = ask({(0, agent): report})
            if report.is_terminated or report.is_truncated:
                break
            report = side.apply(answer[0, agent])
        signs.append(int(np.sign(total)))
    return signs


if __name__ == "__main__":
    main()
