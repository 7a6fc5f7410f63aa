"""The messages of the package's errors and warnings, read from its source.

A message is

- what an exception is made with, or what the log or the parser of a command line gets;
- what a program ends with (``sys.exit``), or prints as an error, also one of the shell;
- what ``/healthz`` and ``/readyz`` answer while a server is not well.

Its values are written as "…".
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.shell_messages import begins_with, shell_messages

ROOT = Path(__file__).parent.parent
FOLDERS = ("relaax", "algorithms", "environments", "deploy")

#: Exceptions that only an error of RELAAX raises.
OF_BUGS = {"AssertionError", "RuntimeError", "NotImplementedError"}

#: Its argument is a part of its message, and who raises it does not write that.
MADE_OF_PARTS = {"Abandoned"}

#: What a server's port for operators is given: functions that return in words what is wrong.
_CHECKED = {"alive_if", "ready_if"}

_LOGGED = {"warning", "error", "critical", "exception"}
_PERCENT = re.compile(r"%[-+0-9.]*[a-zA-Z]")
_WORDS = re.compile(r"[A-Za-z]{3}")


@dataclass(frozen=True)
class Message:
    text: str
    place: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@cache
def all_messages() -> list[Message]:
    """Return all messages that hold words of their own."""
    trees = _trees()
    errors = _exceptions(trees.values())
    checks = _checks(trees.values())
    found = [
        (path, line, text)
        for path, tree in trees.items()
        for line, text in (*_messages(tree, errors), *_complaints(tree, checks))
    ]
    found += [each for folder in FOLDERS for each in shell_messages(ROOT / folder)]
    return [
        Message(text, f"{path.relative_to(ROOT)}:{line}")
        for path, line, text in found
        if _WORDS.search(text)
    ]


def all_texts() -> set[str]:
    """Return all texts of the code, messages or not, with their values as "…"."""
    return {
        _PERCENT.sub("…", text)
        for tree in _trees().values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp))
        for text in _texts(node)
    }


@cache
def _trees() -> dict[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text())
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if _is_program(path)
    }


def _is_program(path: Path) -> bool:
    if "_pb2" in path.name or not path.is_file() or "template" in str(path.parent):
        return False
    return path.suffix == ".py" or begins_with(path, "python")


def _exceptions(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names of all exceptions: Python's own, and what is derived of them here."""
    known = {
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, Exception)
    } | {"ArgumentTypeError", "PydanticCustomError"}
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while derived := {
        node.name
        for node in classes
        if node.name not in known and any(_name(base) in known for base in node.bases)
    }:
        known |= derived
    return known - OF_BUGS - MADE_OF_PARTS


def _messages(tree: ast.Module, errors: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = _name(node.func)
        if name in errors or _reports(node):
            first = 1 if name == "PydanticCustomError" else 0  # before it stands its kind
            for argument in node.args[first : first + 1]:
                for text in _texts(argument):
                    yield node.lineno, _PERCENT.sub("…", text) if name in _LOGGED else text


def _reports(call: ast.Call) -> bool:
    match ast.unparse(call.func):
        case "super().__init__" | "sys.exit":
            return True
        case "print":
            return any(ast.unparse(each) == "file=sys.stderr" for each in call.keywords)
    called = call.func
    if not isinstance(called, ast.Attribute):
        return False
    if called.attr == "say":  # of a RepeatedWarning
        return _name(called.value) in ("complaint", "_complaint")
    return called.attr in _LOGGED and _name(called.value) in ("_log", "logger", "parser")


def _checks(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names of the functions that say what is wrong with a server."""
    return {
        _name(node)
        for tree in trees
        for call in _given_checks(tree)
        for node in ast.walk(call.args[0])
        if isinstance(node, (ast.Name, ast.Attribute))
    }


def _complaints(tree: ast.Module, checks: set[str]) -> Iterator[tuple[int, str]]:
    """Yield what is said of a server that is not well."""
    values = [
        call.args[0].body for call in _given_checks(tree) if isinstance(call.args[0], ast.Lambda)
    ]
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) if name in checks:
                values += [
                    each.value
                    for each in ast.walk(node)
                    if isinstance(each, (ast.Return, ast.Yield)) and each.value is not None
                ]
            case ast.Call(func=ast.Name("_say"), args=[_, ast.List(elts=said)]):
                values += said
    for value in values:
        for text in _texts(value):
            yield value.lineno, text


def _given_checks(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _name(node.func) in _CHECKED:
            yield node


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _texts(node: ast.expr) -> list[str]:
    """Return what a text may be: more than one where the code chooses."""
    match node:
        case ast.Constant(value=None):
            return []  # nothing is wrong
        case ast.Constant(value=value):
            return [str(value)]
        case ast.JoinedStr(values=parts):
            return ["".join(p.value if isinstance(p, ast.Constant) else "…" for p in parts)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [one + two for one in _texts(left) for two in _texts(right)]
        case ast.IfExp(body=body, orelse=orelse):
            return [*_texts(body), *_texts(orelse)]
        case _:
            return ["…"]
