"""The key ``agents`` of an algorithm's section: which policy acts for which agent."""

import pytest
from trained import SECTIONS, algorithm_of

from relaax.errors import ConfigurationError
from relaax.learning.policy import Seat
from relaax.steps import AgentName

TWO = [{"index_regex": "left", "policy": "first"}, {"index_regex": ".*"}]


def parts_of(name, **keys):
    algorithm, config = algorithm_of(name, SECTIONS[name] | keys)
    return algorithm.module.Builder(config).policy(1)


@pytest.mark.parametrize("name", ["ppo", "dqn", "sac"])
def test_a_learner_that_publishes_leaves_room_for_policies_of_other_names(name):
    policy_of = parts_of(name, agents=TWO).policy_of
    agents = [AgentName("left", "a", 0), AgentName("right", "a", 1)]
    assert [policy_of(Seat(0, agent)) for agent in agents] == ["first", "default"]
    assert parts_of(name).policy_of is None


@pytest.mark.parametrize(
    ("name", "keys"),
    [("ppo", {"learner": "worker"}), ("dqn", {"learners": {"count": 2}}), ("da3c", {})],
)
def test_where_gradients_move_the_parameters_there_is_one_policy(name, keys):
    with pytest.raises(ConfigurationError, match="agents: policy: 'first' needs one learner in a"):
        parts_of(name, agents=TWO, **keys)
    named = parts_of(name, agents=[{"index_regex": "left"}], **keys)
    assert named.policy_of(Seat(0, AgentName("left"))) == "default"


def test_candidates_of_a_population_act_for_all_agents():
    with pytest.raises(ValueError, match="agents"):
        parts_of("es", agents=[{"index_regex": ".*"}])


@pytest.mark.parametrize("agents", [[], [{}], ["left"]])
def test_a_list_without_entries_or_expressions_is_refused(agents):
    with pytest.raises(ValueError, match="agents"):
        parts_of("ppo", agents=agents)
