"""Which group of an actor worker an agent belongs to: seed 002, "Matching Agents to streams"."""

import pytest

from relaax.configuration import load_actor
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


ACTOR = ("--config", "config/ppo_cartpole.yaml", "--env", "CartPole-v1")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], False),
        (["--mode", "eval_stochastic"], True),
        (["--mode", "eval_stochastic", "--fetch-parameter-mode", "second"], False),
    ],
)
def test_an_evaluation_fetches_for_each_episode_unless_it_has_a_rule(words, expected):
    assert load_actor([*ACTOR, *words]).options.fetches_for_each_evaluation is expected


@pytest.mark.parametrize(
    "words",
    [
        ["--learner", "localhost:7002"],
        ["--replay-servers", "localhost:7003"],
        ["--when-full", "drop"],
        ["--limit-episode-length", "9"],
        ["--record-video", "videos"],
    ],
)
def test_options_without_effect_beside_agents_are_refused_by_name(words):
    with pytest.raises(ConfigurationError, match=f"{words[0]}: with --agents"):
        load_actor([*ACTOR, "--agents", "agents.yaml", *words])


def test_parameters_are_fetched_after_parts_of_seconds_but_not_of_steps():
    words = [*ACTOR, "--fetch-parameter-interval", "0.5"]
    by_seconds = load_actor([*words, "--fetch-parameter-mode", "second"]).options
    assert by_seconds.fetch_parameter_interval == 0.5
    with pytest.raises(ConfigurationError, match="a whole number of steps"):
        load_actor(words)
