"""Which part may import which: dependencies point one way."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent

#: The modules that every layer shares. They import one another and nothing else of the package.
WORDS = (
    "relaax.address", "relaax.errors", "relaax.observations", "relaax.spaces", "relaax.steps",
    "relaax.__version__",
)  # fmt: skip

#: Packages below all others but the words: what a process says, and how it lives.
GROUND = ("relaax/processes", "relaax/telemetry")

#: What a command is built from.
OF_COMMANDS = (
    *GROUND,
    "relaax/algorithm_base",
    "relaax/checkpoints",
    "relaax/configuration",
    "relaax/inference",
    "relaax/names",
    "relaax/net",
    "relaax/net/access",
    "relaax/parameters",
    "relaax/replay",
    "relaax/telemetry/operators",
)

#: Each part, and the parts besides itself and the words that it may import. All others it may not:
#: with the parts that may import it, every pair is decided here, in both directions. A folder that
#: is a part of its own does not belong to the folder around it.
MAY_IMPORT = {
    "relaax/processes": (),
    "relaax/telemetry": ("relaax/processes",),
    "relaax/net/access": GROUND,
    "relaax/net": (*GROUND, "relaax/net/access"),
    "relaax/protocol": ("relaax/net",),
    "relaax/client": (*GROUND, "relaax/net/access", "relaax/protocol"),
    "relaax/telemetry/operators": (*GROUND, "relaax/net", "relaax/net/access"),
    "relaax/algorithm_base": GROUND,
    "relaax/replay": (*GROUND, "relaax/net"),
    "relaax/inference": (
        *GROUND,
        "relaax/algorithm_base",
        "relaax/names",
        "relaax/net",
        "relaax/replay",
    ),
    "relaax/parameters": (*GROUND, "relaax/algorithm_base", "relaax/net"),
    "relaax/configuration": (
        *GROUND,
        "relaax/algorithm_base",
        "relaax/names",
        "relaax/net",
        "relaax/net/access",
        "relaax/parameters",
        "relaax/replay",
    ),
    "relaax/checkpoints": (
        *GROUND,
        "relaax/algorithm_base",
        "relaax/configuration",
        "relaax/parameters",
    ),
    "relaax/parameters/database": (
        *GROUND,
        "relaax/algorithm_base",
        "relaax/checkpoints",
        "relaax/configuration",
    ),
    "relaax/telemetry/training": (
        *GROUND,
        "relaax/checkpoints",
        "relaax/configuration",
        "relaax/telemetry/operators",
    ),
    "relaax/names": (*GROUND, "relaax/net"),
    "relaax/populations": (*GROUND, "relaax/checkpoints", "relaax/configuration", "relaax/net"),
    "relaax/populations/process": (*OF_COMMANDS, "relaax/populations", "relaax/telemetry/training"),
    "relaax/learning": (
        *GROUND,
        "relaax/algorithm_base",
        "relaax/configuration",
        "relaax/parameters",
        "relaax/replay",
    ),
    "relaax/acting": (*GROUND, "relaax/algorithm_base", "relaax/learning", "relaax/parameters"),
    "relaax/assembly": (
        *GROUND,
        "relaax/acting",
        "relaax/algorithm_base",
        "relaax/configuration",
        "relaax/learning",
        "relaax/parameters",
        "relaax/replay",
    ),
    "relaax/compat/surreal": (
        *GROUND,
        "relaax/acting",
        "relaax/algorithm_base",
        "relaax/client",
        "relaax/learning",
        "relaax/parameters",
        "relaax/replay",
    ),
    "relaax/compat/memoire": (*GROUND, "relaax/net", "relaax/replay"),
    "relaax/experiments": ("relaax/algorithm_base", "relaax/configuration", "relaax/processes"),
    "relaax/launcher/algorithm_template": ("relaax/algorithm_base",),
    "relaax/launcher/application_template": ("relaax/client",),
    "relaax/launcher/experiment_template": ("relaax/experiments",),
    "relaax/parameters/process": (
        *OF_COMMANDS,
        "relaax/parameters/database",
        "relaax/populations",
        "relaax/telemetry/training",
    ),
    "relaax/replay/process": (*OF_COMMANDS, "relaax/telemetry/training"),
    "relaax/server/certificates": (*GROUND, "relaax/configuration", "relaax/net/access"),
    "relaax/server/exploitation": OF_COMMANDS,
    "relaax/server/rlx_server": (*OF_COMMANDS, "relaax/protocol", "relaax/server/exploitation"),
    "relaax/server/inference": (*OF_COMMANDS, "relaax/telemetry/training"),
    "relaax/server/learner": (
        *OF_COMMANDS,
        "relaax/telemetry/training",
        "relaax/populations",
        "relaax/replay/process",
    ),
    # An actor's process has an environment and a policy: it is a worker and a client at once.
    "relaax/server/actor": (
        *OF_COMMANDS,
        "relaax/acting",
        "relaax/client",
        "relaax/compat/surreal",
        "relaax/server/rlx_server",
        "relaax/telemetry/training",
    ),
    # What is exported is what acts in a training.
    "relaax/server/export": (*OF_COMMANDS, "relaax/learning", "relaax/server/exploitation"),
    # One process with all the parts of a training.
    "relaax/server/serial": (
        *OF_COMMANDS,
        "relaax/client",
        "relaax/parameters/process",
        "relaax/protocol",
        "relaax/server/learner",
        "relaax/server/rlx_server",
    ),
    # The launcher prints the parameter server's progress, and looks at what an algorithm makes of
    # its settings.
    "relaax/launcher": (
        *OF_COMMANDS,
        "relaax/experiments",
        "relaax/parameters/process",
        "relaax/replay/process",
        "relaax/server/serial",
    ),
    "environments": ("relaax/client", "relaax/processes"),
    # Benchmarks look at every part, but for the servers' insides.
    "benchmarks": (
        *OF_COMMANDS,
        "relaax/assembly",
        "relaax/client",
        "relaax/compat/memoire",
        "relaax/learning",
        "relaax/parameters/database",
        "relaax/parameters/process",
        "relaax/populations",
        "relaax/protocol",
        "relaax/replay/process",
        "relaax/server/serial",
        "relaax/telemetry/training",
    ),
    "algorithms": (
        "relaax/assembly",
        "relaax/algorithm_base",
        "relaax/learning",
        "relaax/parameters",
        "relaax/replay",
    ),
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


def part_of(path: str) -> str | None:
    """The part that a file, or a module with slashes for its dots, belongs to."""
    around = [part for part in MAY_IMPORT if path == part or path.startswith(f"{part}/")]
    return max(around, key=len, default=None)


def is_word(name: str) -> bool:
    return is_inside(name, WORDS)


def own_imports(path: Path) -> set[str]:
    ours = ("relaax.", "algorithms", "environments")
    return {name for name in imports_of(ast.walk(parsed(path))) if name.startswith(ours)}


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_only_what_lies_below_it(part: str):
    allowed = {part, *MAY_IMPORT[part]}
    files = [
        path for path in files_of(part) if part_of(path.relative_to(REPOSITORY).as_posix()) == part
    ]
    names = set().union(*(own_imports(path) for path in files))
    strangers = {name for name in names if part_of(name.replace(".", "/")) not in allowed}
    assert {name for name in strangers if not is_word(name)} == set()


def test_every_module_belongs_to_a_part():
    words = {f"{word.replace('.', '/')}.py" for word in WORDS}
    paths = [path.relative_to(REPOSITORY).as_posix() for path in files_of("relaax")]
    loose = [path for path in paths if part_of(path) is None and path not in words]
    folders = {"relaax", "relaax/compat", "relaax/server"}
    assert set(loose) == {f"{folder}/__init__.py" for folder in folders}


def test_parts_do_not_import_one_another_in_a_circle():
    open_parts = dict(MAY_IMPORT)
    while free := [part for part, below in open_parts.items() if not set(below) & set(open_parts)]:
        for part in free:
            del open_parts[part]
    assert open_parts == {}


def test_words_import_words_alone():
    for word in set(WORDS) - {"relaax.__version__"}:
        path = REPOSITORY / f"{word.replace('.', '/')}.py"
        assert {name for name in own_imports(path) if not is_word(name)} == set()


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


def test_no_server_needs_gymnasium():
    """Only programs with environments of their own do: images of servers do not have it."""
    servers = (
        "relaax.launcher.main", "relaax.parameters.process.wiring", "relaax.replay.process.main",
        "relaax.server.learner.builder", "relaax.server.rlx_server.wiring",
        "relaax.server.rlx_server.worker.process",
    )  # fmt: skip
    code = f"import sys; sys.modules['gymnasium'] = None; import {', '.join(servers)}"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
