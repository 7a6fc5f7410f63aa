"""docs/surreal.md says what is there."""

import re

import pytest
from surreal_page import PAGE, whole_algorithm

from relaax.compat import surreal
from relaax.configuration import ActorOptions, LearnerOptions, ParameterServerOptions, load_actor
from relaax.configuration.algorithm_loader import load_algorithm, make_config

OPTIONS = {
    field.alias
    for options in (ActorOptions, LearnerOptions, ParameterServerOptions)
    for field in options.model_fields.values()
}


@pytest.fixture(name="folder")
def _folder(tmp_path):
    for name, text in whole_algorithm().items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_folder_of_the_page_is_an_algorithm_with_its_keys(folder):
    configuration = load_actor([str(folder / "training.yaml")])
    algorithm = load_algorithm(configuration.algorithm.directory)
    config = make_config(algorithm, configuration.algorithm)
    assert algorithm.has_learner(config)
    assert algorithm.has_actor
    learner = algorithm.make_learner(config, 1)
    assert learner.inputs["experience"].batch_size == 64
    assert set(learner.state()) >= {"module/w1", "attribute/target_parameters/w1"}


def test_the_options_that_it_names_are_there():
    named = set(re.findall(r"`(--[\w-]+)", PAGE)) - {"--config"}
    assert named <= OPTIONS
    assert len(named) > 10


def test_the_hooks_that_it_names_are_there():
    for title, owner in (
        ("Actors", surreal.Actor), ("Buffers", surreal.Buffer), ("Learners", surreal.Learner),
    ):  # fmt: skip
        section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
        hooks = [name for row in rows for name in re.findall(r"`(\w+)\(", row) if name != "len"]
        assert hooks
        assert [name for name in hooks if not hasattr(owner, name)] == []


def test_the_keys_that_it_names_are_there():
    rows = re.findall(r"^\| `replay\..*\| (.*) \|$|^\| `algo\..*\| (.*) \|$", PAGE, re.MULTILINE)
    keys = [key for row in rows for cell in row for key in re.findall(r"`(\w+)`", cell)]
    assert keys
    assert set(keys) <= set(surreal.Settings.model_fields)
