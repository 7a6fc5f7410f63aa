"""The observations of the other agents of an environment, beside those of each."""

import numpy as np
import pytest

from relaax.acting.preprocessor import Preprocessor
from relaax.algorithm_base import EnvironmentInfo
from relaax.errors import InvalidState
from relaax.learning.method_config import MethodConfig, MethodSettings
from relaax.learning.networks import POLICY, Head, read_network
from relaax.learning.team import TEAM, Team, TeamSettings, TeamView, team_shape
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, AgentName, read_transitions


def environment(name, group, number):
    return EnvironmentInfo("", None, None, 0, 0, agent=AgentName(name, group, number))


class Seen:
    """A view of two environments with three agents each, whose slots are not in order."""

    def __init__(self):
        self.view = TeamView((2,), Team(3))
        self.view.grow(8)
        slots = np.array([7, 2, 0, 1, 3, 4])
        named = [environment("abc"[i], group, i) for group in "xy" for i in range(3)]
        self.view.connect(slots, named)
        self._is_running = np.zeros(8, np.bool_)

    def report(self, slots, flags, states, finals=()):
        slots, flags = np.array(slots), np.array(flags, np.uint8)
        read = read_transitions(slots, flags, np.zeros(len(slots)), self._is_running[slots])
        self._is_running[slots] = (flags & (TERMINATED | TRUNCATED) == 0) | (flags & START != 0)
        pair = np.array([[s, s] for s in states], np.float32).reshape(-1, 2)
        last = np.array([[f, f] for f in finals], np.float32).reshape(-1, 2)
        acting, final = self.view.beside(read, pair, last)
        return [_firsts(seen) for seen in (acting, final)]


def _firsts(observations):
    """Return the first number of each agent that each row shows."""
    return observations[TEAM][:, ::2].tolist() if isinstance(observations, dict) else []


@pytest.fixture(name="seen")
def _seen():
    return Seen()


def test_an_agent_has_the_observations_of_the_others_by_their_index_beside_its_own(seen):
    acting, _ = seen.report([7, 2, 0, 1, 3, 4], [START] * 6, [1, 2, 3, 4, 5, 6])
    assert acting == [[2, 3], [1, 3], [1, 2], [5, 6], [4, 6], [4, 5]]
    acting, _ = seen.report([0, 7], [0, 0], [30, 10])
    assert acting == [[10, 2], [2, 30]]


def test_agents_that_take_turns_are_seen_as_they_last_reported(seen):
    assert seen.report([7], [START], [1])[0] == [[0, 0]]
    assert seen.report([2], [START], [2])[0] == [[1, 0]]
    assert seen.report([7], [0], [10])[0] == [[2, 0]]


def test_an_agent_whose_episode_is_over_has_zeros_until_its_next_one(seen):
    seen.report([7, 2, 0], [START] * 3, [1, 2, 3])
    acting, _ = seen.report([7, 2, 0], [0, TERMINATED, 0], [10, 30])
    assert acting == [[0, 30], [10, 0]]
    assert seen.report([2], [START], [20])[0] == [[10, 30]]


def test_the_states_in_which_agents_are_cut_off_are_seen_together_and_not_by_the_next_game(seen):
    seen.report([7, 2, 0], [START] * 3, [1, 2, 3])
    ends = TRUNCATED | FINAL | START
    acting, finals = seen.report([7, 2, 0], [ends] * 3, [4, 5, 6], [7, 8, 9])
    assert finals == [[8, 9], [7, 9], [7, 8]]
    assert acting == [[5, 6], [4, 6], [4, 5]]
    _, finals = seen.report([7, 2, 0], [TRUNCATED | FINAL, TERMINATED, 0], [60], [70])
    assert finals == [[0, 60]]


@pytest.mark.parametrize(
    ("features", "expected"), [(None, [[4, 5, 6], [1, 2, 3]]), ((2, 0), [[6, 4], [3, 1]])]
)
def test_names_have_their_order_and_some_of_the_numbers_may_be_left_out(features, expected):
    view = TeamView({"b": (1,), "a": (2,)}, Team(2, features))
    view.grow(2)
    view.connect(np.arange(2), [environment("l", "x", 0), environment("r", "x", 1)])
    read = read_transitions(
        np.arange(2), np.full(2, START, np.uint8), np.zeros(2), np.zeros(2, np.bool_)
    )
    states = {"b": np.array([[3.0], [6.0]]), "a": np.array([[1.0, 2.0], [4.0, 5.0]])}
    seen, _ = view.beside(read, states, np.zeros(0))
    assert seen[TEAM].tolist() == expected
    assert seen["b"] is states["b"]


def test_a_group_of_another_size_is_refused():
    view = TeamView((2,), Team(3))
    view.grow(2)
    pair = [environment("l", "x", 0), environment("r", "x", 1)]
    with pytest.raises(
        InvalidState, match="acts for 2 agents of the environment, and team_size is 3"
    ):
        view.connect(np.arange(2), pair)


def test_images_and_an_observation_of_the_same_name_are_refused_by_name():
    with pytest.raises(ValueError, match=r"team_size: 2 agents: the observation eye is an image"):
        team_shape({"eye": (8, 8)}, Team(2))
    with pytest.raises(ValueError, match="state_size: team: an input has this name"):
        team_shape({"team": (8,)}, Team(2))
    with pytest.raises(ValueError, match="team_features: 8: observations have the numbers 0 to 7"):
        team_shape({"eye": (8,)}, Team(2, (0, 8)))


class Settings(MethodSettings, TeamSettings):
    """The keys of a method whose critic sees all agents."""


class Config(MethodConfig):
    def __init__(self, **keys):
        self.settings = Settings(**keys)

    def action_space(self):
        return None


def test_a_hello_with_another_number_of_agents_does_not_fit():
    config = Config(state_size=[2], team_size=3)
    agents = [AgentName(name, "", index) for index, name in enumerate("abc")]
    assert config.misfit_of(agents) is None
    assert "acts for 1 agent of the environment, and team_size is 3" in config.misfit_of(agents[:1])
    assert "acts for 3 agents of the environment, and team_size is 1" in Config(
        state_size=[2]
    ).misfit_of(agents)


def test_clients_send_their_own_observations_and_networks_have_the_others_beside_them():
    settings = Config(state_size=[2], history_len=2, team_size=3).settings
    assert settings.own_inputs == (2,)
    assert settings.inputs == {"": (2,), TEAM: (4,)}
    preprocessor = Preprocessor((2,), 2, added={TEAM: (4,)})
    preprocessor.grow(1)
    own = preprocessor.check(np.ones((1, 2)))
    assert own.shape == (1, 2)
    states = {"": own, TEAM: np.ones((1, 4), np.float32)}
    seen = preprocessor.observe(np.array([0]), states, np.array([True]))
    assert {name: part.shape for name, part in seen.items()} == {"": (1, 4), TEAM: (1, 8)}


def test_a_network_may_be_described_for_a_state_without_a_name_and_the_team():
    heads = (Head(POLICY, 2, sees=("",)), Head("value", 1, sees=("", TEAM)))
    described = {"layers": [{"dense": 8}], "encoders": {TEAM: [{"dense": 16}]}}
    network = read_network(described, {"": (2,), TEAM: (6,)}, heads)
    sizes = {head.name: network.feature_size(head) for head in network.heads}
    assert sizes == {POLICY: 8, "value": 24}
