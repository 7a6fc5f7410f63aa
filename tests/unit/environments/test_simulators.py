"""The simulators of environments/: Atari games, ViZDoom and DeepMind Lab, played by hand."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from relaax.client.simulator import Simulator, Step
from relaax.errors import ConfigurationError

REPOSITORY = Path(__file__).parents[3]
ENVIRONMENTS = REPOSITORY / "environments"


@pytest.fixture(name="programs", autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs find the modules beside them, and the stand-in for the Lab."""
    for folder in ("ALE", "ViZDoom", "DeepMind_Lab"):
        monkeypatch.syspath_prepend(str(ENVIRONMENTS / folder))
    monkeypatch.syspath_prepend(str(REPOSITORY / "tests" / "stand_in"))


@pytest.fixture(name="atari")
def _atari() -> ModuleType:
    import atari_game

    return atari_game


@pytest.fixture(name="doom")
def _doom() -> ModuleType:
    import doom_game

    return doom_game


@pytest.fixture(name="lab")
def _lab() -> Iterator[ModuleType]:
    import random_agent

    yield random_agent
    sys.modules.pop("deepmind_lab", None)


def play(simulator: Simulator, action: int, most: int = 100_000) -> list[Step]:
    """Start an episode and repeat an action until its end."""
    simulator.restart()
    steps = []
    while len(steps) < most:
        steps.append(simulator.apply(action))
        if steps[-1].is_terminated or steps[-1].is_truncated:
            break
    return steps


class TestAtari:
    def game(self, atari: ModuleType, name: str = "boxing", **settings: object) -> Simulator:
        rom = atari.find_rom(name, Path("/nonexistent"))
        game: Simulator = atari.GameFactory(name, rom, **settings)(1)
        return game

    def test_states_are_small_grey_pictures(self, atari: ModuleType):
        game = self.game(atari)
        state = game.restart()
        assert (state.shape, state.dtype) == ((84, 84), np.uint8)
        assert game.observation_space == {
            "type": "Box", "shape": [84, 84], "dtype": "uint8", "low": 0, "high": 255
        }  # fmt: skip
        assert len(np.unique(state)) > 3

    def test_all_actions_or_the_games_own(self, atari: ModuleType):
        assert self.game(atari).action_space == {"type": "Discrete", "n": 18}
        pong = self.game(atari, "pong", minimal=True)
        assert pong.action_space == {"type": "Discrete", "n": 6}

    def test_a_game_has_an_end_and_its_score(self, atari: ModuleType):
        pong = self.game(atari, "pong", sticky=0.0)
        steps = play(pong, 0)
        assert steps[-1].is_terminated
        assert sum(step.reward for step in steps) == -21  # who does nothing loses
        assert {step.reward for step in steps} == {0.0, -1.0}

    def test_the_same_seed_is_the_same_game(self, atari: ModuleType):
        first, second = (play(self.game(atari), 2, 200)[-1].state for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_states_are_those_of_gymnasiums_preprocessing(
        self, atari: ModuleType, monkeypatch: pytest.MonkeyPatch
    ):
        """Two independent ways to the same picture: theirs is made by OpenCV."""
        import ale_py
        import gymnasium

        gymnasium.register_envs(ale_py)
        theirs = gymnasium.wrappers.AtariPreprocessing(
            gymnasium.make("ALE/Boxing-v5", frameskip=1, repeat_action_probability=0.0,
                           full_action_space=True),
            noop_max=0,
        )  # fmt: skip
        monkeypatch.setattr(atari, "MAX_IDLE_ACTIONS", 0)
        game = self.game(atari, sticky=0.0)
        before, _ = theirs.reset(seed=1)
        np.testing.assert_allclose(game.restart().astype(int), before, atol=1)
        for action in np.random.default_rng(1).integers(0, 18, 200).tolist():
            state, reward, *_ = theirs.step(action)
            step = game.apply(action)
            assert step.reward == reward
            np.testing.assert_allclose(step.state.astype(int), state, atol=1)
        theirs.close()

    def test_a_folder_comes_before_the_games_of_ale_py(self, atari: ModuleType, tmp_path: Path):
        own = tmp_path / "boxing.bin"
        own.write_bytes(b"")
        assert atari.find_rom("boxing", tmp_path) == own

    def test_a_game_that_is_misspelt_is_named(self, atari: ModuleType):
        with pytest.raises(ConfigurationError, match=r"no game 'boxin'.*did you mean boxing"):
            atari.find_rom("boxin", Path("/nonexistent"))


class TestDoom:
    @pytest.fixture(name="game")
    def _game(self, doom: ModuleType) -> Iterator[Simulator]:
        game = doom.GameFactory("basic", doom.find_scenario("basic"))(1)
        yield game
        game.close()

    def test_states_are_small_grey_pictures(self, game: Simulator):
        state = game.restart()
        assert (state.shape, state.dtype) == ((60, 80), np.uint8)
        assert len(np.unique(state)) > 10

    def test_an_action_presses_nothing_or_one_button(self, game: Simulator):
        assert game.action_space == {"type": "Discrete", "n": 4}

    def test_a_player_that_does_nothing_runs_out_of_time(self, game: Simulator):
        steps = play(game, 0)
        assert steps[-1].is_truncated
        assert not steps[-1].is_terminated
        assert sum(step.reward for step in steps) == -300
        assert steps[-1].state is steps[-2].state

    def test_a_player_that_shoots_in_all_places_kills(self, game: Simulator):
        for _ in range(20):
            game.restart()
            for action in (3, *[1, 1, 3] * 12, *[2, 2, 3] * 24):
                step = game.apply(action)
                if step.is_terminated or step.is_truncated:
                    break
            if step.is_terminated:
                break
        assert step.is_terminated
        assert step.reward > 90  # a hit is worth 101, less what the frames cost

    def test_pictures_and_variables_together(self, doom: ModuleType):
        game = doom.GameFactory("basic", doom.find_scenario("basic"), variables=True)(1)
        state = game.restart()
        assert state["screen"].shape == (60, 80, 1)
        assert state["variables"].tolist() == [0.5]  # 50 rounds
        game.apply(3)
        assert play(game, 3, 4)[-1].state["variables"] < 0.5
        game.close()

    def test_a_scenario_that_is_misspelt_is_named(self, doom: ModuleType):
        with pytest.raises(ConfigurationError, match="no scenario 'basik'; did you mean basic"):
            doom.find_scenario("basik")
        with pytest.raises(ConfigurationError, match=r"no scenario mine\.cfg"):
            doom.find_scenario("mine.cfg")


class TestLab:
    def test_the_eleven_actions_of_the_seed(self, lab: ModuleType):
        assert list(lab.ACTIONS) == [
            "look_left", "look_right", "look_up", "look_down", "strafe_left", "strafe_right",
            "forward", "backward", "fire", "jump", "crouch",
        ]  # fmt: skip
        level = lab.LevelFactory("tests/demo_map")(None)
        assert level.action_space == {"type": "Discrete", "n": 11}
        level.restart()
        for number in range(11):  # the Lab takes all of them
            level.apply(number)

    def test_an_episode(self, lab: ModuleType):
        level = lab.LevelFactory("tests/demo_map", frame_skip=4)(1)
        assert level.restart().tolist() == [[100 + line] * 84 for line in range(84)]
        steps = play(level, list(lab.ACTIONS).index("forward"))
        assert [step.reward for step in steps] == [4.0] * 15
        assert steps[0].state.tolist() == [[104 + line] * 84 for line in range(84)]
        assert steps[-1].is_terminated
        level.close()

    def test_options_with_underscores_are_those_with_dashes(self, lab: ModuleType):
        words = ["--rlx_server", "a:1", "--level_script=b_c", "-x_y", "d_e"]
        assert [lab.with_dashes(word) for word in words] == [
            "--rlx-server", "a:1", "--level-script=b_c", "-x_y", "d_e"
        ]  # fmt: skip
