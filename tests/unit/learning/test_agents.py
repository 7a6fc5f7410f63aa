"""The key ``agents``: which policy acts for which agent."""

import pytest

from relaax.learning.agents import AgentPolicies, AgentSection
from relaax.learning.policy import Seat
from relaax.steps import UNNAMED_AGENT, AgentName


def policies(*pairs):
    return AgentPolicies([AgentSection(index_regex=regex, policy=name) for regex, name in pairs])


def named(name, index):
    return Seat(0, AgentName(name, "group", index))


def test_the_first_entry_that_matches_all_of_the_name_or_of_the_index_says_the_policy():
    chosen = policies(("player_1", "first"), ("[12]", "second"), (".*", "rest"))
    assert chosen(named("player_1", 0)) == "first"
    assert chosen(named("player_11", 1)) == "second"
    assert chosen(named("player_2", 12)) == "rest"
    assert chosen(Seat(0, UNNAMED_AGENT)) == "rest"


def test_an_agent_that_no_entry_matches_is_an_error_with_its_name():
    chosen = policies(("player_1", "first"), ("1", "second"))
    agents = [AgentName("player_1", "", 0), AgentName("x", "", 1), AgentName("player_3", "", 2)]
    assert chosen.misfit_of(agents[:2]) is None
    misfit = "matches the agent 'player_3' with the index 2: the expressions are 'player_1', '1'"
    assert misfit in chosen.misfit_of(agents)
    with pytest.raises(ValueError, match="'player_3' with the index 2"):
        chosen(named("player_3", 2))


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [
        ({"index_regex": "("}, "is no regular expression"),
        ({"index_regex": ".*", "policy": "a policy"}, "should match pattern"),
        ({"index_regex": ".*", "policy": ""}, "should match pattern"),
        ({"index": ".*"}, "index"),
    ],
)
def test_a_mistake_in_an_entry_is_refused(keys, mistake):
    with pytest.raises(ValueError, match=mistake):
        AgentSection.model_validate(keys)
