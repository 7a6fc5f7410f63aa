"""docs/algorithms.md shows code that is there: its quotations stand in the example's files."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = (REPOSITORY / "docs" / "algorithms.md").read_text()
EXAMPLE = "\n".join(
    path.read_text()
    for path in sorted((REPOSITORY / "tests" / "learning" / "reinforce_gaussian").glob("*.py"))
)

#: Definitions of the example, as the page shows them.
QUOTED = [
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    if re.search(r"class (Reinforce|Config)\b", block)
]


def statements(code: str) -> list[str]:
    """The lines of some code, without blank ones, imports, and where they are indented."""
    lines = (line.strip() for line in code.splitlines())
    return [line for line in lines if line and not line.startswith(("from ", "import ", "#"))]


def test_the_page_quotes_the_example():
    assert len(QUOTED) >= 2


@pytest.mark.parametrize("block", QUOTED, ids=lambda block: block.split("\n")[0])
def test_every_quoted_line_stands_in_the_example(block):
    known = set(statements(EXAMPLE))
    assert [line for line in statements(block) if line not in known and line != "..."] == []
