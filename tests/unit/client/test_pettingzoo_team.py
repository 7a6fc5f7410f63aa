"""The agents of a parallel environment as one environment of Gymnasium."""

import sys

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from processes import REPOSITORY
from race_environment import RACERS, ParallelRace

from relaax.client.action_masks import MaskedState
from relaax.client.gymnasium_tasks import GymnasiumSimulator
from relaax.client.pettingzoo_environments import PettingZooFactory
from relaax.client.pettingzoo_runner import build_parser, run_command
from relaax.client.pettingzoo_team import Team, TeamFactory
from relaax.errors import ConfigurationError


class Pair:
    """Two agents that see their own number and all actions before; no masks."""

    possible_agents = RACERS
    state_space = spaces.Box(0, 9, (1,), np.float32)

    def __init__(self, ends=None):
        self.ends = ends or {}

    def observation_space(self, agent):
        return spaces.Box(0, 9, (3,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(2 + (agent == "right"), start=5)

    def seen(self, actions):
        return {a: np.float32([number, *actions]) for number, a in enumerate(RACERS)}

    def state(self):
        return np.float32([self.moves])

    def reset(self, seed=None, options=None):
        self.moves = 0
        return self.seen((0, 0)), {}

    def step(self, actions):
        self.moves += 1
        rewards = {"left": 1.0, "right": 3.0}
        ends = {a: self.moves >= self.ends.get(a, 2) for a in RACERS}
        return self.seen(actions.values()), rewards, ends, dict.fromkeys(RACERS, False), {}

    def close(self):
        self.moves = -1


def test_observations_are_joined_actions_are_of_all_and_rewards_are_their_mean_or_sum():
    team = Team(Pair(), "mean")
    assert team.observation_space.shape == (6,)
    assert team.action_space.nvec.tolist() == [2, 3]
    assert team.reset()[0].tolist() == [0, 0, 0, 1, 0, 0]
    seen, reward, *ends, _ = team.step(np.array([6, 5]))
    assert (seen.tolist(), reward, ends) == ([0, 6, 5, 1, 6, 5], 2.0, [False, False])
    assert Team(Pair(), "sum").unwrapped.action_space == team.action_space
    other = Team(Pair(), "sum")
    other.reset()
    assert other.step(np.array([5, 5]))[1] == 4.0


def test_the_state_of_the_environment_is_beside_them_where_it_is_asked_for():
    team = Team(Pair(), "mean", has_state=True)
    team.reset()
    seen, *_ = team.step(np.array([5, 5]))
    assert {name: part.tolist() for name, part in seen.items()} == {
        "observation": [0, 5, 5, 1, 5, 5], "state": [1],
    }  # fmt: skip


def test_it_is_an_environment_as_gymnasium_has_it():
    check_env(Team(Pair(), "mean", has_state=True), skip_render_check=True)


def test_masks_of_agents_lie_one_behind_the_other():
    simulator = GymnasiumSimulator(Team(ParallelRace(most_moves=3, length=9), "sum"), "race", 1)
    assert simulator.action_space == {"type": "MultiDiscrete", "nvec": [2, 2]}
    first = simulator.restart()
    assert isinstance(first, MaskedState)
    assert (first.state.tolist(), first.mask.tolist()) == ([0, 0], [1, 1, 1, 1])
    step = simulator.apply(np.array([0, 0]))
    assert step.state.mask.tolist() == [1, 0, 1, 0]
    steps = [simulator.apply(np.array([0, 0])) for _ in range(2)]
    assert [(each.is_terminated, each.is_truncated) for each in steps] == [
        (False, False), (False, True),
    ]  # fmt: skip
    assert steps[-1].state.mask.tolist() == [1, 1, 1, 1]  # no action follows


def test_agents_that_do_not_end_together_are_refused_by_name():
    team = Team(Pair({"left": 1}), "mean")
    team.reset()
    with pytest.raises(ConfigurationError, match="left end, and right not; play it without --tea"):
        team.step(np.array([5, 5]))


def test_agents_that_see_pictures_or_act_by_numbers_are_refused_by_name():
    class Pictures(Pair):
        def observation_space(self, agent):
            return spaces.Box(0, 255, (8, 8, 3), np.uint8)

    class Numbers(Pair):
        def action_space(self, agent):
            return spaces.Box(0, 1, (2,))

    class Stateless(Pair):
        state_space = None

    for kind, has_state, said in (
        (Pictures, False, r"left observes Box\(0, 255, \(8, 8, 3\)"),
        (Numbers, False, r"left acts in Box\(0.0, 1.0, \(2,\)"),
        (Stateless, True, "--state: the environment's state_space is None"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            Team(kind(), "mean", has_state)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--env", "race_environment", "--team", "sum", "--api", "aec"], "act in turns"),
        (["--env", "race_environment", "--state"], "--state is for --team"),
        (["--env", "classic/tictactoe-v3", "--team", "sum"], "no interface of parallel"),
    ],
)
def test_options_that_do_not_fit_are_named(options, said, capsys):
    arguments = build_parser("").parse_args(["--rlx-server", "localhost:1", *options])
    assert run_command(arguments) == 2
    assert said in capsys.readouterr().err


def test_an_environment_of_mpe_is_a_team():
    team = TeamFactory(PettingZooFactory("mpe2.simple_spread_v3", {"max_cycles": 3}), "mean", True)
    together = team.vector(2)
    seen, _ = together.reset(seed=[1, 2])
    assert seen["observation"].shape == seen["state"].shape == (2, 54)
    ends = [together.step(np.zeros((2, 3), np.int64))[3].tolist() for _ in range(3)]
    assert ends == [[False, False], [False, False], [True, True]]
    together.close()


class TestTheTwoStepGame:
    @pytest.fixture(name="game")
    def _game(self, monkeypatch):
        monkeypatch.syspath_prepend(str(REPOSITORY / "environments" / "PettingZoo"))
        yield lambda **kwargs: TeamFactory(PettingZooFactory("two_step_game", kwargs))()
        sys.modules.pop("two_step_game", None)

    @pytest.mark.parametrize("chosen", [0, 1])
    def test_the_first_agent_chooses_the_matrix(self, game, chosen):
        team, paid = game(), {}
        for other in (0, 1):
            for actions in np.ndindex(2, 2):
                assert team.reset()[0].tolist() == [1, 0, 0] * 2
                seen, reward, is_over, *_ = team.step(np.array([chosen, other]))
                assert (reward, is_over) == (0.0, False)
                assert seen.tolist() == [0, 1 - chosen, chosen] * 2
                _, reward, is_over, *_ = team.step(np.array(actions))
                assert is_over
                assert paid.setdefault(actions, reward) == reward
        expected = [[7, 7], [7, 7]] if chosen == 0 else [[0, 1], [1, 8]]
        assert [[paid[row, column] for column in (0, 1)] for row in (0, 1)] == expected

    def test_agents_may_see_their_number(self, game):
        assert game(shows_index=True).reset()[0].tolist() == [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]
