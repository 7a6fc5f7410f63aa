"""Which environment an option names."""

import logging

import gymnasium
import numpy as np
import pytest

from relaax.algorithm_base import ConfigBase
from relaax.client.restarts import TIMEOUT_S
from relaax.client.simulator import RunObserver
from relaax.configuration import ActorOptions, load_actor
from relaax.configuration.announced_spaces import Doubts
from relaax.configuration.first_look import LOOKS, FirstLook
from relaax.errors import ConfigurationError
from relaax.server.actor.environments import environment_factory
from relaax.server.actor.surreal import WatchedEnvironment, require_fit

OWN = """
import gymnasium
from gymnasium import spaces
import numpy as np


class Simulator(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, speed=1):
        self.speed = speed
"""

YAML = """
relaax-actor:
  --env: CartPole-v1
  --env-kwargs: {render_mode: rgb_array}
algorithm:
  name: sac
  state_size: [4]
  action_size: 2
"""


@pytest.fixture(name="own")
def _own(tmp_path):
    file = tmp_path / "simulator.py"
    file.write_text(OWN)
    return file


def test_a_name_of_gymnasium():
    environment = environment_factory("CartPole-v1", {"render_mode": "rgb_array"})()
    assert environment.spec.id == "CartPole-v1"
    assert environment.render_mode == "rgb_array"
    environment.close()


def test_a_class_in_a_file_with_its_arguments(own):
    environment = environment_factory(f"{own}:Simulator", {"speed": 3})()
    assert environment.speed == 3


def test_a_class_that_is_not_there_is_named(own):
    with pytest.raises(ConfigurationError, match=r"simulator\.py has no class 'Simulater'"):
        environment_factory(f"{own}:Simulater", {})()


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"there is no file .*absent\.py"):
        environment_factory(f"{tmp_path}/absent.py:Simulator", {})()


class TestOptions:
    @pytest.fixture(name="written")
    def _written(self, tmp_path):
        file = tmp_path / "training.yaml"
        file.write_text(YAML)
        return str(file)

    def test_the_help_explains_every_option_with_its_default(self, capsys):
        with pytest.raises(SystemExit):
            load_actor(["--help"])
        text = " ".join(capsys.readouterr().out.split())
        for field in ActorOptions.model_fields.values():
            assert field.alias in text
            assert field.description in text
        assert "(default: training)" in text
        assert "--parameter-server: localhost:7000" in text

    def test_the_file_may_come_first(self, written):
        assert load_actor([written, "--actors", "2"]) == load_actor(
            ["--config", written, "--actors", "2"]
        )

    def test_arguments_of_the_environment_are_json_on_the_command_line(self, written):
        from_file = load_actor([written]).options
        given = load_actor([written, "--env-kwargs", '{"sutton_barto_reward": true}']).options
        assert from_file.env_kwargs == {"render_mode": "rgb_array"}
        assert given.env_kwargs == {"sutton_barto_reward": True}

    @pytest.mark.parametrize("given", ["[1]", "{"])
    def test_other_arguments_are_refused(self, written, given):
        with pytest.raises(ConfigurationError, match="--env-kwargs"):
            load_actor([written, "--env-kwargs", given])

    def test_an_environment_must_be_named(self, tmp_path):
        file = tmp_path / "training.yaml"
        file.write_text(YAML.replace("  --env: CartPole-v1\n", ""))
        with pytest.raises(ConfigurationError, match="--env: is missing"):
            load_actor([str(file)])

    def test_an_environment_may_take_ten_minutes_unless_another_time_is_given(self, written):
        assert load_actor([written]).options.environment_timeout == TIMEOUT_S
        given = load_actor([written, "--environment-timeout", "0"]).options
        assert given.environment_timeout == 0
        with pytest.raises(ConfigurationError, match="--environment-timeout"):
            load_actor([written, "--environment-timeout", "-1"])

    def test_a_mode_that_there_is_not_is_refused(self, written):
        with pytest.raises(ConfigurationError, match="--mode"):
            load_actor([written, "--mode", "eval"])


class Simple(gymnasium.Env):
    """Gives rewards of 5,000."""

    observation_space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Box(-1, 1, (2,))})
    action_space = gymnasium.spaces.Discrete(3)

    def step(self, action):
        return {"a": np.zeros(2)}, 5000.0, False, False, {}


def test_the_first_steps_are_checked_for_doubtful_values(caplog):
    look = FirstLook(Doubts(logging.getLogger("test")), ConfigBase({}))
    environment = WatchedEnvironment(Simple(), RunObserver(), look)
    for _ in range(LOOKS + 1):
        environment.step(0)
    (doubt,) = caplog.messages
    assert doubt.startswith("doubtful: an environment has sent a reward of size 5000")
    assert environment.look is None


class AnyConfig(ConfigBase):
    def __init__(self, observed, acted):
        super().__init__({})
        self._spaces = observed, acted

    def observation_space(self):
        return self._spaces[0]

    def action_space(self):
        return self._spaces[1]


def test_an_environment_of_other_spaces_is_refused_with_both_written_out(own):
    environment = environment_factory(f"{own}:Simulator", {})()
    wanted = {"type": "Box", "dtype": "float32", "shape": [2]}, {"type": "Discrete", "n": 3}
    require_fit(AnyConfig(*wanted), environment, "Simulator")
    with pytest.raises(ConfigurationError, match=r'actions of Simulator .*"n": 3.*"n": 4'):
        require_fit(AnyConfig(wanted[0], {"type": "Discrete", "n": 4}), environment, "Simulator")
    elsewhere = {"type": "Discrete", "n": 3, "start": 1}
    with pytest.raises(ConfigurationError, match="actions are counted from 1"):
        require_fit(AnyConfig(wanted[0], elsewhere), environment, "Simulator")
    other = {"type": "Box", "dtype": "float32", "shape": [5]}
    with pytest.raises(ConfigurationError, match=r"observations of Simulator .*\[2\].*\[5\]"):
        require_fit(AnyConfig(other, wanted[1]), environment, "Simulator")


def test_a_file_of_the_user_s_runs_once_in_a_process(tmp_path):
    file = tmp_path / "counted.py"
    file.write_text(
        "from pathlib import Path\n"
        "with Path(__file__).with_suffix('.txt').open('a') as log:\n"
        "    log.write('run;')\n"
        "class Counted:\n"
        "    pass\n"
    )
    first, second = (environment_factory(f"{file}:Counted", {})() for _ in range(2))
    assert type(first) is type(second)
    assert file.with_suffix(".txt").read_text() == "run;"
