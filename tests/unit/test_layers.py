"""Which part may import which: dependencies point one way."""

import ast
from pathlib import Path

import pytest

#: The modules that every layer shares.
WORDS = (
    "relaax.address", "relaax.allocator", "relaax.errors", "relaax.interval_metrics",
    "relaax.metrics", "relaax.spaces", "relaax.steps", "relaax.transitions",
)  # fmt: skip

REPOSITORY = Path(__file__).parent.parent.parent


def imports_of(path: Path) -> set[str]:
    """Every absolute module that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return found


def relaax_imports(folder: str) -> set[str]:
    files = [path for path in (REPOSITORY / folder).rglob("*") if is_python(path)]
    assert files, f"{folder} has no Python file"
    names = set().union(*(imports_of(path) for path in files))
    return {name for name in names if name.startswith(("relaax.", "algorithms"))}


def is_python(path: Path) -> bool:
    if not path.is_file() or path.name.endswith(("_pb2.py", "_pb2_grpc.py")):
        return False
    return path.suffix == ".py" or (path.suffix == "" and path.name == "main")


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [
        ("environments", ("relaax.client", *WORDS)),
        ("relaax/client", ("relaax.client", "relaax.protocol", *WORDS)),
        ("relaax/protocol", ("relaax.protocol", *WORDS)),
        ("relaax/bridge", ("relaax.bridge", "relaax.algorithm_base", *WORDS)),
        ("relaax/learning", ("relaax.learning", "relaax.algorithm_base", *WORDS)),
        ("relaax/algorithm_base", ("relaax.algorithm_base", *WORDS)),
        (
            "relaax/server",
            ("relaax.server", "relaax.protocol", "relaax.bridge", "relaax.algorithm_base", *WORDS),
        ),
        ("algorithms", ("relaax.algorithm_base", "relaax.learning", *WORDS)),
    ],
)
def test_a_part_imports_only_what_lies_below_it(folder: str, allowed: tuple[str, ...]):
    strangers = {name for name in relaax_imports(folder) if not name.startswith(allowed)}
    assert strangers == set()
