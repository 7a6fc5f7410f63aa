"""A safe loader of YAML that takes no file that grows when it is read.

Aliases let a few lines stand for billions of values ("billion laughs"). They cost nothing until
something walks through them: a check, a copy, or a message that shows a value.
"""

from typing import Any

import yaml

#: How deep lists and mappings may lie in each other.
MAX_LEVELS = 64

#: How many values a file may stand for. The largest configuration here has 200.
MAX_VALUES = 10_000

#: What PyYAML says as the second half of a sentence, whose first half is of another line.
_IN_WHOLE = {
    "but found another document": (
        "a second document begins here, with '---', and a file has one: delete this line, or write "
        "what stands above it below it"
    ),
    "second occurrence": "an anchor (&name) of this name stands above already",
}


class LimitedLoader(yaml.SafeLoader):
    """Raises MarkedYAMLError, with the line, where a file goes beyond the limits."""

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


def load_yaml(text: str) -> Any:
    """Return what a text holds; yaml.YAMLError, or ValueError for an impossible date or number."""
    return yaml.load(text, LimitedLoader)  # noqa: S506 - a subclass of SafeLoader


def mistake_of(error: yaml.MarkedYAMLError) -> str:
    """Return what is wrong with a file, in words that stand alone behind the number of a line."""
    return _IN_WHOLE.get(str(error.problem), str(error.problem))


def _refusal(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.composer.ComposerError(None, None, problem, mark)
