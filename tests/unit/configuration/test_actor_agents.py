"""Which group of an actor worker an agent belongs to: seed 002, "Matching Agents to streams"."""

import pytest

from relaax.configuration.actor_agents import ActorAgents, read_agents
from relaax.errors import ConfigurationError


def groups(*expressions):
    return ActorAgents(groups=[{"index_regex": each, "arguments": []} for each in expressions])


def names(count):
    return [f"agent_{number}" for number in range(count)]


@pytest.mark.parametrize(
    ("expressions", "agents", "expected"),
    [
        ((".*",), names(7), {0: names(7)}),
        (("[0-3]", "[3-6]"), names(7), {0: names(4), 1: names(7)[4:]}),
        (("player_2", "player_.*"), ["player_1", "player_2"], {1: ["player_1"], 0: ["player_2"]}),
        (("0",), [""], {0: [""]}),
    ],
)
def test_the_first_group_counts_that_matches_all_of_an_index_or_a_name(
    expressions, agents, expected
):
    assert groups(*expressions).members(agents) == expected


def test_an_agent_that_no_group_matches_is_named():
    message = "no index_regex matches the agent 'agent_7' with the index 7; there are: '.0-6.'"
    with pytest.raises(ConfigurationError, match=message):
        groups("[0-6]").members(names(14))


def test_a_wrong_key_of_a_file_is_an_error_with_its_path(tmp_path):
    file = tmp_path / "agents.yaml"
    file.write_text("groups:\n- {index_regx: a, arguments: []}\n")
    with pytest.raises(ConfigurationError, match=r"yaml: groups: 0: index_regx: no such key"):
        read_agents(file)
