"""Reads YAML files, with 1e8 and 7e-4 as numbers, and refuses a file that grows when it is read.

Aliases let a few lines stand for billions of values ("billion laughs"). They cost nothing until
something walks through them: a check, a copy, or a message that shows a value.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from relaax.errors import ConfigurationError

#: How deep lists and mappings may lie in each other.
MAX_LEVELS = 64

#: How many values a file may stand for. The largest configuration here has 200.
MAX_VALUES = 10_000

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

#: Messages of PyYAML that are the second half of a sentence, whose first half is of another line.
_IN_WHOLE = {
    "but found another document": (
        "a second document begins here, with '---', and a file has one: delete this line, or write "
        "what stands above it below it"
    ),
    "second occurrence": "an anchor (&name) of this name stands above already",
}


class Loader(yaml.SafeLoader):
    """Reads 1e8 as a float; MarkedYAMLError, with the line, for a key that is written twice.

    So is a file refused that goes beyond the limits.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own table, copied before it is changed
        first: [entry for entry in entries if entry[0] != _FLOAT_TAG]
        for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._levels = 0
        self._values = 0
        #: By the node of an anchor: how many values it stands for.
        self._values_of: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node; of an alias, the one that it stands for."""
        mark: yaml.Mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        is_alias = self.check_event(yaml.AliasEvent)
        before = self._values
        self._levels += 1
        if self._levels > MAX_LEVELS:
            raise _refusal(f"values lie in each other on more than {MAX_LEVELS} levels", mark)
        node = super().compose_node(parent, index)
        self._levels -= 1
        if node is None:
            return None
        if is_alias and node not in self._values_of:
            raise _refusal("an alias stands for what it is a part of", mark)
        self._values += self._values_of[node] if is_alias else 1
        if self._values > MAX_VALUES:
            raise _refusal(f"the file stands for more than {MAX_VALUES} values", mark)
        if not is_alias:
            self._values_of[node] = self._values - before
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return a mapping, before ``<<`` is merged."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key = (key_node.tag, key_node.value)
            if key in seen:
                problem = f"the key {key_node.value} is written twice"
                raise _refusal(problem, key_node.start_mark)
            seen.add(key)
        return node


Loader.add_implicit_resolver(_FLOAT_TAG, _FLOAT, list("-+.0123456789"))


def load_yaml(text: str) -> Any:
    """Return the content of a text; yaml.YAMLError, or ValueError for an impossible date."""
    return yaml.load(text, Loader)  # noqa: S506 - a subclass of SafeLoader


def mistake_of(error: yaml.MarkedYAMLError) -> str:
    """Return the mistake in a file, in words that stand alone behind the number of a line."""
    return _IN_WHOLE.get(str(error.problem), str(error.problem))


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
    """Return the content of a text; ConfigurationError begins with its ``place``."""
    try:
        return load_yaml(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigurationError(f"{place}, line {line}: {mistake_of(error)}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigurationError(f"{place}: {error}") from error


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: {error.reason}") from error
    return read_value(text, str(path))


def _refusal(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.composer.ComposerError(None, None, problem, mark)
