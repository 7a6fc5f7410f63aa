"""``make unit`` looks into this folder alone: a test elsewhere says which of the others runs it."""

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
MARKED = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(integration|learning)", re.MULTILINE)


def test_each_test_of_another_folder_is_marked():
    others = [path for path in TESTS.rglob("test_*.py") if TESTS / "unit" not in path.parents]
    assert len(others) > 50
    assert not [path.name for path in others if not MARKED.search(path.read_text())]
