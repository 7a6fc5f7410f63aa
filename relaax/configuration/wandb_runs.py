"""Runs of workers at Weights & Biases, in a file that an experiment writes for a process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relaax.configuration.mistakes import explain
from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError


class WandbRun(BaseModel):
    """A run: its names, and the worker's configuration; seed 002, "wandb configuration"."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    entity: str | None = None
    project: str
    group: str
    job_type: str
    name: str
    #: By path: "env.type_".
    config: dict[str, Any] = Field(default_factory=dict)
    #: The run has the metrics of its process whose names begin so.
    metrics: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    runs: list[WandbRun]


def read_wandb_runs(file: Path) -> list[WandbRun]:
    """Return the runs of a file; ConfigurationError with the path of a wrong key."""
    try:
        return _File.model_validate(read_yaml(file)).runs
    except ValidationError as error:
        raise ConfigurationError("; ".join(f"{file}: {each}" for each in explain(error))) from error


def flattened(value: Any, path: str = "") -> dict[str, Any]:
    """Return values inside of mappings and lists by their paths, "a.b.0"."""
    if isinstance(value, Mapping):
        parts = {str(key): each for key, each in value.items()}
    elif isinstance(value, list):
        parts = {str(number): each for number, each in enumerate(value)}
    else:
        return {path: value}
    found: dict[str, Any] = {}
    for key, each in parts.items():
        found |= flattened(each, f"{path}.{key}" if path else key)
    return found
