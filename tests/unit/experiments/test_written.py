"""Experiments as Python and as YAML: the same object either way."""

from pathlib import Path

import pytest
from experiment_parts import (
    INLINE,
    actor,
    buffer,
    evaluated,
    experiment,
    manager,
    policy_worker,
    trainer,
)

from relaax.errors import ConfigurationError
from relaax.experiments import (
    Condition,
    Curriculum,
    ExperimentConfig,
    ExperimentScheduling,
    SampleStream,
    Scheduling,
    TasksGroup,
    Trainer,
    WorkerInformation,
    register_environment,
    register_policy,
)
from relaax.experiments.files import experiments_in, file_of, load_experiment
from relaax.experiments.written import NamedExperiment, from_yaml, to_yaml

#: Seed 002, "Configuring Your Experiment", for three workers in the place of sixteen.
ATARI = NamedExperiment(
    "example-atari",
    ExperimentScheduling(
        actors=TasksGroup(count=3, scheduling=Scheduling.actor_worker_default(cpu=1, mem=1024)),
        policies=[
            TasksGroup(count=2, scheduling=Scheduling.policy_worker_default(gpu=0.25, mem=10240))
        ],
        trainers=TasksGroup(count=1, scheduling=Scheduling.trainer_worker_default(cpu=4)),
    ),
    ExperimentConfig(
        actors=[actor(game_name="PongNoFrameskip-v4") for _ in range(3)],
        policies=[policy_worker() for _ in range(2)],
        trainers=[trainer(trainer=Trainer(type_="ppo", args={"entropy_beta": 1e-3}))],
        timeout_seconds=7200,
    ),
    {"atari": "games.py:Atari"},
    {"atari_naive_rnn": {"state_size": [84, 84]}},
)


@pytest.mark.parametrize(
    "described",
    [
        ATARI,
        experiment(
            [
                actor([INLINE], info=WorkerInformation(host_key="main")),
                actor(
                    [INLINE],
                    [SampleStream(type_="NULL")],
                    info=WorkerInformation(watch_keys="main"),
                ),
            ],
            [],
            [trainer()],
        ),
        experiment([actor([INLINE], ["steps"])], [], [trainer()], buffers=[buffer()] * 2),
        evaluated(manager(eval_games_per_version=20, eval_time_per_version_seconds=60.0)),
        evaluated(
            manager(
                curriculum_config=Curriculum(
                    type_=Curriculum.Type.Linear,
                    name="corridor",
                    stages="near",
                    conditions=[Condition(type_="Converged", args={"value_field": "win_rate"})],
                )
            )
        ),
    ],
)
def test_the_same_experiment_is_read_that_was_written(tmp_path, described):
    file = tmp_path / "experiment.yaml"
    file.write_text(to_yaml(described))
    assert from_yaml(file) == described
    assert to_yaml(from_yaml(file)) == to_yaml(described)


def test_workers_that_are_alike_are_written_once_and_streams_by_their_names():
    text = to_yaml(ATARI)
    assert text.count("game_name") == 1
    assert "- count: 3\n" in text
    assert "inference_stream: default\n" in text


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("index_regex", "actors: 0: agent_specs: 0: index_regx: no such key"),
        ("sample_streams", "actors: 0: sample_steams: no such key"),
        ("type_: CartPole-v1", "actors: 0: env: typ: no such key"),
    ],
)
def test_an_unknown_key_is_an_error_with_its_path(tmp_path, written, expected):
    file = tmp_path / "experiment.yaml"
    wrong = expected.split(": ")[-2]
    right = written.partition(":")[0]
    text = to_yaml(experiment([actor([INLINE])], [], [trainer()]))
    file.write_text(text.replace(f"{right}:", f"{wrong}:", 1))
    with pytest.raises(ConfigurationError, match=expected):
        from_yaml(file)


PYTHON = """
from relaax.experiments import *
from others import NAME


class Small(Experiment):
    def scheduling_setup(self):
        return ExperimentScheduling()

    def initial_setup(self):
        return ExperimentConfig()


register_experiment("first", Small)
register_experiment(NAME, Small)
"""


def test_what_other_processes_cannot_find_is_not_registered():
    with pytest.raises(ConfigurationError, match=r"give a text such as 'my_file.py:MyEnvironment'"):
        register_environment("plant", dict)
    with pytest.raises(ConfigurationError, match="give the keys of the algorithm's section"):
        register_policy("net", dict)


def test_a_file_of_python_has_the_experiments_that_it_registers(tmp_path):
    (tmp_path / "others.py").write_text("NAME = 'second'\n")
    file = tmp_path / "experiments.py"
    file.write_text(PYTHON)
    for _ in range(2):  # names of one run are no names of the next
        assert experiments_in(file) == ["first", "second"]
    assert load_experiment(file, "second").name == "second"
    with pytest.raises(ConfigurationError, match="has first, second: choose one with -e"):
        load_experiment(file)
    with pytest.raises(ConfigurationError, match="no experiment 'secund'; it has first, second"):
        load_experiment(file, "secund")
    assert load_experiment(file.rename(tmp_path / "first.py")).name == "first"


def test_a_wrong_key_in_python_is_an_error_with_its_line(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from relaax.experiments import *\n\nPolicy(tpye_='section')\n")
    with pytest.raises(ConfigurationError, match=r"mine.py, line 3: Policy: .*tpye_: no such key"):
        load_experiment(file)


def test_a_file_is_found_by_its_name_here_and_in_the_folder_of_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = Path("examples/experiments")
    with pytest.raises(ConfigurationError, match=f"nor pong.py.*{examples}/pong.yml"):
        file_of(Path("pong"))
    examples.mkdir(parents=True)
    for file in (examples / "pong.yaml", Path("pong.py")):  # those of this folder come first
        file.touch()
        assert file_of(Path("pong")) == file
    assert file_of(examples / "pong.yaml") == examples / "pong.yaml"
