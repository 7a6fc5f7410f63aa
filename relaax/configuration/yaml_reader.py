"""Reads YAML files, with 1e8 and 7e-4 as numbers."""

import re
from pathlib import Path
from typing import Any

import yaml

from relaax.configuration.yaml_limits import LimitedLoader, mistake_of
from relaax.errors import ConfigurationError

#: PyYAML follows YAML 1.1, where 1e8 and 7e-4 are text, because they have no dot. Here a float has
#: a dot or an exponent. 08 has neither and stays text.
_FLOAT = re.compile(
    r"""[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?$
    |[-+]?[0-9]+[eE][-+]?[0-9]+$
    |[-+]?\.(inf|Inf|INF)$
    |\.(nan|NaN|NAN)$""",
    re.VERBOSE,
)
_FLOAT_TAG = "tag:yaml.org,2002:float"


class _Loader(LimitedLoader):
    """A safe loader that reads 1e8 as a float and refuses a key that is written twice."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own table, copied before it is changed
        first: [entry for entry in entries if entry[0] != _FLOAT_TAG]
        for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return a mapping, before ``<<`` is merged; ConfigurationError for a repeated key."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key = (key_node.tag, key_node.value)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise ConfigurationError(f"line {line}: the key {key_node.value} is written twice")
            seen.add(key)
        return node


_Loader.add_implicit_resolver(_FLOAT_TAG, _FLOAT, list("-+.0123456789"))


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a file; ConfigurationError names the file and the wrong line."""
    content = _read(path)
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"{path} holds no sections, such as relaax-parameter-server and algorithm"
        )
    return content


def read_keys(path: Path, example: str) -> dict[str, Any]:
    """Return the same of a file with the keys of one section, which may be empty.

    ``example`` is one of these keys, for the message.
    """
    content = _read(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} holds no keys, such as {example}")
    return content


def read_value(text: str, place: str) -> Any:
    """Return what a text holds in YAML; ConfigurationError begins with its ``place``."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigurationError(f"{place}, line {line}: {mistake_of(error)}") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an impossible date
        raise ConfigurationError(f"{place}: {error}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}, {error}") from error


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: {error.reason}") from error
    return read_value(text, str(path))
