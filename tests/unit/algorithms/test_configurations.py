"""The algorithms take what the YAML files in config/ say."""

import pytest
from processes import REPOSITORY

from relaax.configuration import load_rlx_server
from relaax.configuration.algorithm_loader import load_algorithm, make_config


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("config/*.yaml")), ids=lambda p: p.stem)
def test_every_configuration_of_the_repository_is_taken(path):
    section = load_rlx_server(["--config", str(path)]).algorithm
    config = make_config(load_algorithm(section.directory), section)
    assert config.network.manifest.specs


def test_a_critic_of_transitions_sees_what_the_policy_does_not():
    heads = {"policy": {"sees": ["a"]}}
    section = {"state_size": {"a": [2], "masses": [3]}, "action_size": 1}
    config = load_algorithm(REPOSITORY / "algorithms" / "sac").Config(
        {**section, "network": {"layers": [{"dense": 8}], "heads": heads}}
    )
    assert config.network.shared == ("a",)
    assert not any("masses" in spec.name for spec in config.network.manifest.specs)
    assert config.critic.shared == ("a", "action", "masses")
    assert config.fingerprint()["sees"] == {"policy": ["a"]}


def test_what_an_algorithm_names_of_a_choice_is_a_column_of_its_replay():
    algorithm = load_algorithm(REPOSITORY / "algorithms" / "dqn")
    config = algorithm.Config({"state_size": [2], "action_size": 3})
    assert algorithm.replay_spec(config).schema.columns.keys() == {
        "observation",
        "action",
        "reward",
    }
    config.extras = ("policy", "noise")
    columns = algorithm.replay_spec(config).schema.columns
    assert (columns["policy"].shape, columns["noise"].shape) == ((3,), (3,))


SECTIONS = {
    "dqn": {"state_size": [2], "action_size": 2},
    "sac": {"state_size": [2], "action_size": 1},
    "ddpg": {"state_size": [2], "action_size": 1},
}


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"replay_size": 500, "learning_starts": 501},
         "500 steps are fewer than learning_starts, 501"),
        ({"replay_size": 63, "learning_starts": 1, "batch_size": 64},
         "63 steps are fewer than batch_size, 64"),
        ({"replay_size": 5, "learning_starts": 1, "batch_size": 1, "n_step": 3, "history_len": 3},
         "5 steps are fewer than n_step and history_len together, 6"),
    ],
)  # fmt: skip
def test_a_replay_that_is_too_small_for_what_is_drawn_is_refused_with_both_values(
    name, keys, reason
):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    with pytest.raises(ValueError, match=f"replay_size: {reason}"):
        algorithm.Config({**SECTIONS[name], **keys})
