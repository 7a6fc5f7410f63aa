"""The codes that users meet, read from the source: exit statuses, and those of gRPC and HTTP."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.shebang import begins_with

ROOT = Path(__file__).parent.parent
FOLDERS = ("relaax", "algorithms", "environments", "deploy", "requirements")

#: Calls that end a process.
_ENDS = {"sys.exit", "os._exit", "parser.exit"}

#: A constant that is such a status.
_NAMED = re.compile(r"^#: Exit status.*\n(?:#:.*\n)*[A-Z_]+ = (\d+)$", re.MULTILINE)
_SHELLS_EXIT = re.compile(r"\bexit (\d+)\b")
_HTTP = re.compile(r"^([1-5]\d\d) [A-Z][A-Za-z ]+$")


def exit_statuses() -> set[str]:
    """Return all statuses that programs end with, "128 + N" among them."""
    found = {status for tree in _trees("exit", "status") for status in _statuses(tree)}
    for path in _files():
        if path.suffix == ".py":
            found |= set(_NAMED.findall(path.read_text()))
        elif begins_with(path, "sh"):
            found |= set(_SHELLS_EXIT.findall(path.read_text()))
    return found


def grpc_codes() -> set[str]:
    """Return the names of all codes of gRPC that calls are ended with, or that callers look at."""
    return {
        node.attr
        for tree in _trees("StatusCode")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("StatusCode")
    }


def http_statuses() -> set[str]:
    """Return all statuses that a port for operators answers with, such as 200."""
    return {
        match[1]
        for tree in _trees("start_response")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if (match := _HTTP.match(node.value))
    }


def _statuses(tree: ast.Module) -> Iterator[str]:
    """Yield what processes end with, and what functions return that say so."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=called, args=[status, *_]) if ast.unparse(called) in _ENDS:
                yield from _values(status)
            case ast.FunctionDef(returns=ast.Name("int")) if _is_of_a_status(node):
                for each in ast.walk(node):
                    if isinstance(each, ast.Return) and each.value is not None:
                        yield from _values(each.value)


def _is_of_a_status(function: ast.FunctionDef) -> bool:
    return function.name == "main" or "status" in (ast.get_docstring(function) or "")


def _values(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield str(value)
        case ast.JoinedStr():
            yield "1"  # the text is printed
        case ast.BinOp(left=ast.Constant(value=128)):
            yield "128 + N"
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*_values(body), *_values(orelse))


def _trees(*words: str) -> Iterator[ast.Module]:
    """Yield the programs that have one of these words."""
    for path in _files():
        if path.suffix == ".py" or begins_with(path, "python"):
            text = path.read_text()
            if any(word in text for word in words):
                yield ast.parse(text)


@cache
def _files() -> tuple[Path, ...]:
    return tuple(
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file() and "_pb2" not in path.name and "__pycache__" not in str(path)
    )
