"""Where the value of each option stands, and what ``--set`` changes."""

from pathlib import Path

import pytest

from relaax.configuration import load_learner, load_parameter_server, load_rlx_server
from relaax.configuration.algorithm_loader import load_algorithm, make_config
from relaax.errors import ConfigurationError

YAML = """\
relaax-parameter-server: {--log-level: INFO, --checkpoint-dir: cps, --shards: [a:1, b:2]}
relaax-learner: {--replay-servers: [localhost:7003]}
relaax-rlx-server: {--workers: 2, --exploit: best}
access: {--insecure: true}
algorithm: {name: da3c, state_size: [4], action_size: 2, RMSProp: {decay: 0.9}}
"""


@pytest.fixture(name="load")
def _load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.yaml").write_text(YAML)
    return lambda load, *flags: load(["--config", "t.yaml", *flags])


def test_each_value_has_the_source_that_it_was_taken_from(load):
    sources = load(load_rlx_server, "--workers", "3", "--seed", "1").sources
    expected = {
        "--workers": "command line",
        "--exploit": "t.yaml: relaax-rlx-server",
        "--checkpoint-dir": "t.yaml: relaax-parameter-server",
        "--parameter-server": "t.yaml: relaax-parameter-server",
        "--replay-servers": "t.yaml: relaax-learner",
        "--insecure": "t.yaml: access",
        "--bind": "default",
    }
    assert {key: sources[key] for key in expected} == expected


def test_values_of_two_sources_that_do_not_fit_are_named_with_both(load):
    with pytest.raises(ConfigurationError) as error:
        load(load_parameter_server, "--shard", "1/3")
    assert str(error.value) == (
        "--shard 1/3 needs 3 addresses in --shards, not 2 "
        "(--shard: command line; --shards: t.yaml: relaax-parameter-server)"
    )


def test_all_options_are_listed_with_their_sources(load, capsys):
    with pytest.raises(SystemExit) as end:
        load(load_learner, "--list-options", "--nice", "3", "--set", "algorithm.RMSProp.decay=0.5")
    assert end.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "--nice 3  (command line)",
        "--insecure true  (t.yaml: access)",
        "--bind localhost:7002  (default)",
        "--parameter-server a:1 b:2  (t.yaml: relaax-parameter-server)",
        "algorithm.RMSProp.decay 0.5  (command line)",
        "algorithm.action_size 2  (t.yaml: algorithm)",
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("setting", "changed"),
    [
        ("rewards_gamma=0.98", {"rewards_gamma": 0.98}),
        ("initial_learning_rate=7e-4", {"initial_learning_rate": 7e-4}),
        ("action_size=[2, 3]", {"action_size": [2, 3]}),
        ("RMSProp.decay=0.5", {"RMSProp": {"decay": 0.5}}),
        ("RMSProp.epsilon=1", {"RMSProp": {"decay": 0.9, "epsilon": 1}}),
        ("new.deep.key=a=b", {"new": {"deep": {"key": "a=b"}}}),
        ("use_lstm=", {"use_lstm": None}),
    ],
)
def test_a_key_of_the_algorithm_is_set_and_the_others_stay(load, setting, changed):
    written = load(load_rlx_server).algorithm.parameters
    found = load(load_rlx_server, "--set", f"algorithm.{setting}").algorithm
    assert found.parameters == {**written, **changed}


def test_the_last_setting_counts_and_another_algorithm_may_be_named(load):
    flags = ("algorithm.name=da3c_cont", "algorithm.seed=1", "algorithm.seed=2")
    found = load(load_rlx_server, *(word for flag in flags for word in ("--set", flag))).algorithm
    assert found.directory.name == "da3c_cont"
    assert found.parameters["seed"] == 2


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("rewards_gamma=1", "must be algorithm.KEY=VALUE"),
        ("algoritm.seed=1", "must be algorithm.KEY=VALUE; did you mean algorithm?"),
        ("algorithm.seed", "must be algorithm.KEY=VALUE"),
        ("algorithm..seed=1", "must be algorithm.KEY=VALUE"),
        ("algorithm.name.x=1", "name is no section of keys, but 'da3c'"),
        ("algorithm.seed=[1", ", line 1: expected ',' or ']'"),
    ],
)
def test_a_setting_of_another_form_is_refused(load, setting, reason):
    with pytest.raises(ConfigurationError) as error:
        load(load_rlx_server, "--set", setting)
    assert str(error.value).startswith(f"--set {setting}")
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("rewards_gama=0.98", "rewards_gama: no such key; did you mean rewards_gamma?"),
        ("RMSProp.decai=1", "RMSProp.decai: no such key; did you mean decay?"),
        ("rewards_gamma=x", "rewards_gamma: must be a number, is 'x'"),
    ],
)
def test_a_mistake_in_a_setting_is_named_by_its_flag(load, setting, reason):
    section = load(load_rlx_server, "--set", f"algorithm.{setting}").algorithm
    with pytest.raises(ConfigurationError) as error:
        make_config(load_algorithm(section.directory), section)
    assert str(error.value).startswith(f"--set algorithm.{reason}")
