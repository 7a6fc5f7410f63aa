"""Experiments in files: Python, whose classes are registered, or YAML."""

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from relaax.configuration.mistakes import explain
from relaax.errors import ConfigurationError, did_you_mean_one_of
from relaax.experiments.experiment import Registry, collecting
from relaax.experiments.written import NamedExperiment, from_yaml

_YAML = (".yaml", ".yml")

#: Where a file is looked for by its name without its ending: here, and in RELAAX's own folder.
_FOLDERS = (Path(), Path("examples/experiments"))


def file_of(word: Path) -> Path:
    """Return the file of experiments for ``word``: itself, or that of a name such as cartpole.

    ConfigurationError, which lists the files that were looked for, where there is none.
    """
    if word.is_file() or word.suffix:
        return word
    looked_for = [folder / f"{word}{suffix}" for folder in _FOLDERS for suffix in (".py", *_YAML)]
    for file in looked_for:
        if file.is_file():
            return file
    raise ConfigurationError(f"there is no file {word}, nor {', '.join(map(str, looked_for))}")


def experiments_in(file: Path) -> list[str]:
    """Return the names of the experiments of a file, in their order."""
    if file.suffix in _YAML:
        return [from_yaml(file).name]
    return list(_run(file).experiments)


def load_experiment(file: Path, name: str | None = None) -> NamedExperiment:
    """Return an experiment of a file; without a name the only one, or that with the file's name.

    ConfigurationError where there is no such file or name.
    """
    if file.suffix in _YAML:
        experiment = from_yaml(file)
        _chosen(file, [experiment.name], name)
        return experiment
    try:
        registry = _run(file)
        chosen = _chosen(file, list(registry.experiments), name)
        made = registry.experiments[chosen]()
        scheduling, config = made.scheduling_setup(), made.initial_setup()
    except ValidationError as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next(each.lineno for each in reversed(frames) if each.filename == str(file))
        raise ConfigurationError(
            f"{file}, line {line}: {error.title}: {'; '.join(explain(error))}"
        ) from error
    return NamedExperiment(chosen, scheduling, config, registry.environments, registry.policies)


def _chosen(file: Path, names: list[str], name: str | None) -> str:
    if name is None and len(names) == 1:
        return names[0]
    if name is None and file.stem in names:
        return file.stem
    there = ", ".join(names) or "no experiments"
    if name is None:
        raise ConfigurationError(f"{file} has {there}: choose one with -e")
    if name not in names:
        meant = did_you_mean_one_of(name, names)
        raise ConfigurationError(f"{file} has no experiment {name!r}; it has {there}{meant}")
    return name


def _run(file: Path) -> Registry:
    """Run a file of Python, and return the names that it registers."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise ConfigurationError(f"there is no file {file} of Python (.py) or YAML (.yaml)")
    module = importlib.util.module_from_spec(spec)
    with collecting() as registry, _importing_beside(file):
        spec.loader.exec_module(module)
    return registry


@contextmanager
def _importing_beside(file: Path) -> Iterator[None]:
    """Let a file import modules of its own folder, as a program may."""
    sys.path.insert(0, str(file.resolve().parent))
    try:
        yield
    finally:
        sys.path.pop(0)
