"""Which part may import which: dependencies point one way."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent

#: The modules that every layer shares. They import one another and nothing else of the package.
WORDS = (
    "relaax.address", "relaax.allocator", "relaax.cgroups", "relaax.cores", "relaax.errors",
    "relaax.evaluation", "relaax.hints", "relaax.interval_metrics", "relaax.kept_counts",
    "relaax.live_lines", "relaax.metrics", "relaax.observations",
    "relaax.run_variables", "relaax.shard", "relaax.spaces", "relaax.steps",
    "relaax.throttled_log", "relaax.tls_refusals", "relaax.wait_report",
    "relaax.whole_numbers", "relaax.yaml_limits",
    "relaax.__version__",
)  # fmt: skip

#: Each part, and the parts besides itself and the words that it may import. All others it may not:
#: with the parts that may import it, every pair is decided here, in both directions.
MAY_IMPORT = {
    "relaax/access": (),
    "relaax/algorithm_base": (),
    "relaax/protocol": (),
    "relaax/bridge": ("relaax/access", "relaax/algorithm_base"),
    "relaax/replay": ("relaax/bridge",),
    "relaax/learning": ("relaax/algorithm_base", "relaax/replay"),
    "relaax/actor": ("relaax/algorithm_base", "relaax/client", "relaax/learning", "relaax/replay"),
    "relaax/surreal": ("relaax/actor", "relaax/algorithm_base", "relaax/learning", "relaax/replay"),
    "relaax/algorithm_template": ("relaax/algorithm_base",),
    "relaax/application_template": ("relaax/client",),
    "relaax/client": ("relaax/access", "relaax/protocol"),
    "relaax/server/certificates": ("relaax/access", "relaax/server/common"),
    "relaax/server/common": (
        "relaax/access",
        "relaax/algorithm_base",
        "relaax/bridge",
        "relaax/replay",
    ),
    "relaax/server/parameter_server": (
        "relaax/algorithm_base",
        "relaax/bridge",
        "relaax/server/common",
    ),
    "relaax/server/rlx_server": (
        "relaax/access",
        "relaax/algorithm_base",
        "relaax/protocol",
        "relaax/replay",
        "relaax/server/common",
    ),
    "relaax/server/learner": (
        "relaax/algorithm_base",
        "relaax/bridge",
        "relaax/replay",
        "relaax/server/common",
    ),
    "relaax/server/replay_server": (
        "relaax/algorithm_base",
        "relaax/bridge",
        "relaax/replay",
        "relaax/server/common",
    ),
    # An actor's process has an environment and a policy: it is a worker and a client at once.
    "relaax/server/actor": (
        "relaax/actor",
        "relaax/algorithm_base",
        "relaax/client",
        "relaax/learning",
        "relaax/replay",
        "relaax/server/common",
    ),
    # What is exported is what acts in a training.
    "relaax/server/export": ("relaax/algorithm_base", "relaax/learning", "relaax/server/common"),
    # The launcher prints the parameter server's progress, and looks at what an algorithm makes of
    # its settings.
    "relaax/server/launcher": (
        "relaax/algorithm_base",
        "relaax/server/common",
        "relaax/server/parameter_server",
        "relaax/server/serial",
    ),
    # One process with all the parts of a training.
    "relaax/server/serial": (
        "relaax/algorithm_base",
        "relaax/bridge",
        "relaax/client",
        "relaax/protocol",
        "relaax/replay",
        "relaax/server/common",
        "relaax/server/learner",
        "relaax/server/parameter_server",
        "relaax/server/rlx_server",
    ),
    "environments": ("relaax/client",),
    # Benchmarks look at every part, but for the servers' insides.
    "benchmarks": (
        "relaax/algorithm_base",
        "relaax/bridge",
        "relaax/client",
        "relaax/learning",
        "relaax/protocol",
        "relaax/replay",
        "relaax/server/common",
        "relaax/server/parameter_server",
    ),
    "algorithms": ("relaax/algorithm_base", "relaax/learning", "relaax/replay"),
}


def is_python(path: Path) -> bool:
    if not path.is_file() or path.name.endswith(("_pb2.py", "_pb2_grpc.py")):
        return False
    return path.suffix == ".py" or (path.suffix == "" and path.name == "main")


def files_of(folder: str) -> list[Path]:
    files = [path for path in sorted((REPOSITORY / folder).rglob("*")) if is_python(path)]
    assert files, f"{folder} has no Python file"
    return files


def imports_of(nodes: Iterator[ast.AST]) -> set[str]:
    """Every module that ``nodes`` import; a relative one without its dots."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module or ''}.{alias.name}" for alias in node.names}
    return found


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs when a module is imported."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from outside_functions(child)


def is_inside(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_only_what_lies_below_it(part: str):
    allowed = tuple(folder.replace("/", ".") for folder in (part, *MAY_IMPORT[part])) + WORDS
    names = set().union(*(imports_of(ast.walk(parsed(path))) for path in files_of(part)))
    ours = {name for name in names if name.startswith(("relaax.", "algorithms", "environments"))}
    assert {name for name in ours if not is_inside(name, allowed)} == set()


def test_every_part_is_decided_about():
    found = {
        path.parent.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / "relaax").glob("*/__init__.py")
    } | {
        path.parent.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / "relaax" / "server").glob("*/__init__.py")
    }
    assert found - {"relaax/server"} == {part for part in MAY_IMPORT if part.startswith("relaax/")}


def test_words_import_words_alone():
    for word in set(WORDS) - {"relaax.__version__"}:
        path = REPOSITORY / f"{word.replace('.', '/')}.py"
        ours = {name for name in imports_of(ast.walk(parsed(path))) if name.startswith("relaax.")}
        assert {name for name in ours if not is_inside(name, WORDS)} == set()


def library_and_algorithms() -> list[Path]:
    return files_of("relaax") + files_of("algorithms")


def test_tensorflow_is_imported_by_modules_whose_name_says_so():
    strangers = [
        path
        for path in library_and_algorithms()
        if not path.stem.endswith("_tf")
        and any(is_inside(name, ("tensorflow",)) for name in imports_of(ast.walk(parsed(path))))
    ]
    assert strangers == []


def test_such_a_module_is_imported_by_others_only_when_a_function_is_called():
    """So that the parameter server runs without TensorFlow."""
    strangers = [
        path
        for path in library_and_algorithms()
        if not path.stem.endswith("_tf")
        and any(
            part.endswith("_tf")
            for name in imports_of(outside_functions(parsed(path)))
            for part in name.split(".")
        )
    ]
    assert strangers == []
