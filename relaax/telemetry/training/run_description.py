"""A run's configuration for TensorBoard."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from relaax.configuration.yaml_reader import load_yaml
from relaax.observations import flat_items
from relaax.telemetry.metrics import EPISODE_REWARD
from relaax.telemetry.training.event_file import tag, without_torch

with without_torch():
    from tensorboardX.proto.summary_pb2 import Summary
    from tensorboardX.summary import hparams, text

#: The metric by which hyperparameters are compared.
_COMPARED = (EPISODE_REWARD, "episode/length", "server/steps per second")


def describe_run(
    options: Mapping[str, Any], rlx_server: Any, algorithm: str, parameters: Mapping[str, Any]
) -> list[Summary]:
    """Return a run's configuration: as text, and the algorithm's parameters as hyperparameters.

    options: the parameter server's, by name. rlx_server: the YAML's section of the RLX
    server. algorithm: its name. parameters: all other keys of the YAML's ``algorithm:`` section;
    the text has the content of a network's file.
    """
    content = {
        "relaax-parameter-server": _plain(options),
        "relaax-rlx-server": _plain(rlx_server or {}),
        "algorithm": {"name": algorithm, **_plain(parameters), **_network_in_a_file(parameters)},
    }
    written = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return [
        text("configuration", f"```yaml\n{written}```"),
        *_hyperparameters({"algorithm": algorithm, **parameters}),
    ]


def _network_in_a_file(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a network's file, if the configuration names one."""
    path = parameters.get("network")
    if not isinstance(path, str):
        return {}
    try:
        return {"network": load_yaml(Path(path).expanduser().read_text("utf-8"))}
    except (OSError, ValueError, yaml.YAMLError):
        return {}  # the name is recorded


def _plain(value: Any) -> Any:
    """Return a value that YAML can write."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _hyperparameters(parameters: Mapping[str, Any]) -> tuple[Summary, Summary]:
    """Return the records of TensorBoard's hyperparameter plugin at the start of a run."""
    flat = flat_items(parameters, separator=".")
    values = {name: value if isinstance(value, int | float) else str(value) for name, value in flat}
    experiment, start, _ = hparams(values, dict.fromkeys(map(tag, _COMPARED)))
    return experiment, start
