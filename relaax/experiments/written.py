"""Experiments as YAML, and back: the same object is read that was written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, Field, ValidationError

from relaax.algorithm_base import Section
from relaax.configuration.mistakes import explain
from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError
from relaax.experiments.scheduling import ExperimentScheduling
from relaax.experiments.workers import ExperimentConfig, InferenceStream, SampleStream

#: Kinds of workers, which are lists in a file.
KINDS = ("actors", "policies", "buffers", "trainers", "eval_managers", "population_manager")

_TIMEOUT = "timeout_seconds"

#: The key of a worker in a file that stands for so many workers, one like another.
COUNT = "count"


@dataclass(frozen=True)
class NamedExperiment:
    """An experiment that is ready to run: as Python or a file has described it."""

    name: str
    scheduling: ExperimentScheduling
    config: ExperimentConfig
    #: The types that it uses; see ``register_environment`` and ``register_policy``.
    environments: Mapping[str, str] = field(default_factory=dict)
    policy_types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class _File(Section):
    """The keys of a file."""

    name: str
    environments: dict[str, str] = Field(default_factory=dict)
    policy_types: dict[str, dict[str, Any]] = Field(default_factory=dict)
    scheduling: ExperimentScheduling
    actors: list[dict[str, Any]] = Field(default_factory=list)
    policies: list[dict[str, Any]] = Field(default_factory=list)
    buffers: list[dict[str, Any]] = Field(default_factory=list)
    trainers: list[dict[str, Any]] = Field(default_factory=list)
    eval_managers: list[dict[str, Any]] = Field(default_factory=list)
    population_manager: list[dict[str, Any]] = Field(default_factory=list)
    timeout_seconds: int | None = None


def to_yaml(experiment: NamedExperiment) -> str:
    """Return the text of a file; workers that follow one another and are alike are written once."""
    content = {
        "name": experiment.name,
        "environments": dict(experiment.environments),
        "policy_types": {name: dict(keys) for name, keys in experiment.policy_types.items()},
        "scheduling": _plain(experiment.scheduling),
        _TIMEOUT: _fields(experiment.config).get(_TIMEOUT),
        **{kind: _workers(getattr(experiment.config, kind)) for kind in KINDS},
    }
    return yaml.safe_dump(
        {key: value for key, value in content.items() if value}, sort_keys=False, width=100
    )


def from_yaml(path: Path) -> NamedExperiment:
    """Return the experiment of a file; ConfigurationError with the path of a wrong key."""
    try:
        file = _File.model_validate(read_yaml(path))
        workers = {kind: _repeated(kind, getattr(file, kind)) for kind in KINDS}
        given = {} if file.timeout_seconds is None else {_TIMEOUT: file.timeout_seconds}
        config = ExperimentConfig.model_validate({**workers, **given})
    except ValidationError as error:
        raise ConfigurationError("; ".join(f"{path}: {each}" for each in explain(error))) from error
    return NamedExperiment(file.name, file.scheduling, config, file.environments, file.policy_types)


def _workers(workers: Sequence[BaseModel]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for worker, same in groupby(workers):
        count = len(list(same))
        found.append({**({COUNT: count} if count > 1 else {}), **_plain(worker)})
    return found


def _repeated(kind: str, workers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for place, worker in enumerate(workers):
        keys = dict(worker)
        count = keys.pop(COUNT, 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ConfigurationError(f"{kind}.{place}.{COUNT}: must be 1 or more, is {count!r}")
        found.extend(dict(keys) for _ in range(count))
    return found


def _plain(value: Any) -> Any:
    """Return a description as values of YAML: fields that were given, streams by their names."""
    if isinstance(value, (InferenceStream, SampleStream)):
        keys = _fields(value)
        is_name = keys == {"type_": "NAME", "stream_name": value.stream_name}
        return value.stream_name if is_name else keys
    if isinstance(value, BaseModel):
        return _fields(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _fields(value: BaseModel) -> dict[str, Any]:
    fields = type(value).model_fields
    shown = {name: getattr(value, name) for name in fields}
    return {
        name: _plain(each)
        for name, each in shown.items()
        if fields[name].is_required() or each != fields[name].get_default(call_default_factory=True)
    }
