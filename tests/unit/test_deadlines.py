"""Every call to another process has a deadline: what does not answer keeps no caller for ever."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent

#: What makes a call of gRPC, and what a function calls one that was handed one.
MAKERS = {"unary_unary", "unary_stream", "stream_unary", "stream_stream", "_method"}
HANDED = {"method", "call"}

#: Calls of the standard library that wait for another process, and the place of their deadline.
WAITING = {
    "urlopen": 2, "create_connection": 1, "run": None, "check_call": None, "check_output": None,
    "communicate": 1,
}  # fmt: skip

#: Calls that go on as long as the other end is there: keep-alive of gRPC notices that it is gone.
STREAMS: dict[str, set[str]] = {}

#: What hands on all that a caller has named, with the deadline.
HANDS_ON = {"relaax/net/channels.py": "**named"}


def sources() -> list[Path]:
    found = sorted(
        path for part in ("relaax", "requirements") for path in (REPOSITORY / part).rglob("*.py")
    )
    return [path for path in found if not path.name.endswith(("_pb2.py", "_pb2_grpc.py"))]


def last_name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def calls_of_grpc(scope: ast.AST) -> set[str]:
    """The names of what makes a call: attributes that a maker has returned."""
    return {
        last_name(target)
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if last_name(node.value.func) in MAKERS
    }


def is_of_a_stub(func: ast.expr) -> bool:
    """Whether it is ``stub.Method``, as generated code names them."""
    return isinstance(func, ast.Attribute) and last_name(func.value) == "_stub"


def begins_a_call(call: ast.Call, names: set[str], imports_grpc: bool) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "future":
        func = func.value
    if isinstance(func, ast.Call):
        return last_name(func.func) in MAKERS
    if not imports_grpc:
        return False
    is_generated = is_of_a_stub(func) and last_name(func)[:1].isupper()
    is_handed = isinstance(func, ast.Name) and func.id in HANDED and len(call.args) > 0
    return last_name(func) in names or is_generated or is_handed


def waits_without_deadline(call: ast.Call) -> bool:
    name = last_name(call.func)
    if name not in WAITING:
        return False
    if name == "run" and not (
        isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "subprocess"
    ):
        return False
    place = WAITING[name]
    return not has_timeout(call) and (place is None or len(call.args) <= place)


def has_timeout(call: ast.Call) -> bool:
    return any(keyword.arg == "timeout" for keyword in call.keywords)


def without_deadline(text: str, streams: set[str] = frozenset()) -> Iterator[str]:
    """Yield the calls of a module, with their lines, that may wait for ever."""
    tree = ast.parse(text)
    imports_grpc = any(
        isinstance(node, ast.Import) and any(alias.name == "grpc" for alias in node.names)
        for node in ast.walk(tree)
    )
    for scope in tree.body:  # a class, as a rule: another one may give a name another meaning
        names = calls_of_grpc(scope) - set(streams)
        yield from _without_deadline(scope, names, imports_grpc)


def _without_deadline(scope: ast.AST, names: set[str], imports_grpc: bool) -> Iterator[str]:
    for node in ast.walk(scope):
        if not isinstance(node, ast.Call):
            continue
        begins = begins_a_call(node, names, imports_grpc)
        if waits_without_deadline(node) or (begins and not has_timeout(node)):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def test_every_call_to_another_process_has_a_deadline() -> None:
    found = {
        f"{name}, {call}"
        for path in sources()
        for name in [str(path.relative_to(REPOSITORY))]
        for call in without_deadline(path.read_text(), STREAMS.get(name, set()))
        if name not in HANDS_ON or HANDS_ON[name] not in call
    }
    assert found == set()


@pytest.mark.parametrize(
    "call",
    [
        "self._stub.GetStatus(message)",
        "self._read(message)",
        "self._read.future(message, wait_for_ready=True)",
        "self._channel.unary_unary('/a/b')(message)",
        "method(message)",
        "urllib.request.urlopen(url)",
        "socket.create_connection(address)",
        "subprocess.run(command)",
    ],
)
def test_a_call_without_one_is_found(call: str) -> None:
    def module(call: str) -> str:
        read = "self._read = self._channel.unary_unary('/a/Read')"
        return f"import grpc\ndef calls(self):\n    {read}\n    {call}"

    assert len(list(without_deadline(module(call)))) == 1
    assert not list(without_deadline(module(call[:-1] + ", timeout=5)")))
