"""Tests and benchmarks know of a package what its users may know.

Ruff's SLF finds what reaches into an object. Here is what it does not see: a private name that is
imported, or that a test replaces by its name in a string.
"""

import ast
import re
from collections.abc import Iterator

import pytest
from processes import REPOSITORY

#: A private name within a path of dots, or alone; ``__name__`` is none.
_PRIVATE = re.compile(r"(^|\.)_(?!_)\w*$")

#: What replaces or looks up an attribute by its name.
_BY_NAME = {"setattr", "delattr", "getattr", "hasattr"}


def reached_into(tree: ast.AST) -> Iterator[str]:
    """Yield the private names of the project that a program imports, or names in a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("relaax"):
            yield from (each.name for each in node.names if _PRIVATE.search(each.name))
        if isinstance(node, ast.Call) and _called(node) in _BY_NAME:
            for argument in node.args[:2]:
                if isinstance(argument, ast.Constant) and _PRIVATE.search(str(argument.value)):
                    yield str(argument.value)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def test_tests_and_benchmarks_ask_at_the_border() -> None:
    found = {
        str(path.relative_to(REPOSITORY)): names
        for folder in ("tests", "benchmarks")
        for path in (REPOSITORY / folder).rglob("*.py")
        if (names := list(reached_into(ast.parse(path.read_text()))))
    }
    assert found == {}, "state what is promised instead, or hand the code a clock, store or wait"


@pytest.mark.parametrize(
    "program",
    [
        "from relaax.parameters import _x",
        "from relaax.parameters.stub import Bridge, _WAIT_S",
        "monkeypatch.setattr(stub, '_WAIT_S', 1)",
        "monkeypatch.setattr('relaax.parameters.stub._WAIT_S', 1)",
        "getattr(learner, '_update')",
    ],
)
def test_what_reaches_into_a_package_is_found(program) -> None:
    assert list(reached_into(ast.parse(program)))


@pytest.mark.parametrize(
    "program",
    ["from relaax.parameters import Bridge", "setattr(x, '__name__', 1)", "from os import _exit"],
)
def test_nothing_else_is(program) -> None:
    assert not list(reached_into(ast.parse(program)))
