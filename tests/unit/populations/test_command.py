"""The command relaax-population-manager refuses members and rules that do not fit together."""

import pytest
import yaml

from relaax.populations.process.main import main

ALGORITHM = {
    "name": "ppo", "state_size": [4], "action_size": 2, "hidden_layers": [8], "episode_len": 16,
    "passes": 4, "initial_learning_rate": 1e-3,
}  # fmt: skip
STREAM = {"population_sample_stream": "population"}


def refused(folder, capsys, monkeypatch, rules, *members):
    """Return why the command refuses members that have these paths."""
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    for member in members:
        path = folder / f"{member}.yaml"
        path.parent.mkdir(exist_ok=True)
        section = {"--checkpoint-dir": str(folder / "checkpoints")}
        path.write_text(yaml.safe_dump({"relaax-learner": section, "algorithm": ALGORITHM}))
    paths = [str(folder / f"{member}.yaml") for member in members]
    options = ["--rules", str(folder / "rules.yaml"), "--directory", str(folder / "manager")]
    monkeypatch.setattr("sys.argv", ["relaax-population-manager", "--members", *paths, *options])
    assert main() == 2
    return capsys.readouterr().err


def algorithm(type_, **args):
    return {"population_algorithm": {"type_": type_, "args": args}}


def league(*learners):
    return algorithm("league", learners={name: {"stream": name} for name in learners})


def pbt(**more):
    args = {"ready_interval": 1, "truncation_ratio": 0.5, **more}
    return {**algorithm("vanilla_pbt", **args), **STREAM}


def hyperparameters(**keys):
    return {"initial_hyperparams": {"a": keys, "b": keys}}


def exploring(**rule):
    return {**pbt(explore_configs=[{"keys": "passes", **rule}]), **hyperparameters(passes=4)}


@pytest.mark.parametrize(
    ("rules", "members", "said"),
    [
        (league("a", "bb"), "ab", "learners: 'b' is missing"),
        (league("a", "b", "c"), "ab", "learners: 'c' is no member of the population"),
        ({**algorithm("self_play"), **STREAM}, "ab", "self_play has 1 policy, and here are 2"),
        ({**algorithm("psro", oracle_updates=1), **STREAM}, "a", "psro has 2 policies, and here"),
        ({**pbt(), "initial_hyperparams": {"c": {}}}, "ab", "'c' is no member of the population"),
        (pbt(), ["a", "other/a"], "--members: two files have the name 'a'"),
        (pbt(truncation_ratio=0.2), "ab", "0.2 of 2 members is less than one"),
    ],
)
def test_members_that_do_not_fit_the_rules_are_named(
    tmp_path, capsys, monkeypatch, rules, members, said
):
    assert said in refused(tmp_path, capsys, monkeypatch, rules, *members)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            {"method": "resample", "distribution": "uniform", "value_range": [2, 8]},
            "explore_configs: 0: passes may become 2.0",
        ),
        (
            {"method": "resample", "distribution": "categorical", "values": [2, "fast"]},
            "explore_configs: 0: passes may become 'fast'",
        ),
        (
            {"method": "perturb", "factors": [1.2], "min_value": -2, "max_value": -1},
            "explore_configs: 0: passes may become -1",
        ),
    ],
)
def test_values_that_the_algorithm_does_not_allow_are_refused_at_the_start(
    tmp_path, capsys, monkeypatch, rule, said
):
    assert said in refused(tmp_path, capsys, monkeypatch, exploring(**rule), "a", "b")
