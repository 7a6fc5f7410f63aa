"""docs/your_algorithm.md shows code that is there: files of the template, lines of the example."""

import re
from pathlib import Path

import pytest
from your_algorithm_page import PAGE, whole_algorithm

REPOSITORY = Path(__file__).parent.parent.parent
TEMPLATE = REPOSITORY / "relaax" / "launcher" / "algorithm_template"
EXAMPLE = "\n".join(
    path.read_text()
    for path in sorted((REPOSITORY / "tests" / "learning" / "reinforce_gaussian").glob("*.py"))
)

#: Definitions of the example, as the page shows them.
QUOTED = [
    block
    for block in re.findall(
        r"```python\n(.*?)```", PAGE.partition("\n## With the library")[2], flags=re.DOTALL
    )
    if re.search(r"class (Reinforce|Config\(ConfigBase\))|^def make_\w+\(config, \w", block, re.M)
]


def statements(code: str) -> list[str]:
    """The lines of some code, without blank ones, imports, and where they are indented."""
    lines = (line.strip() for line in code.splitlines())
    return [line for line in lines if line and not line.startswith(("from ", "import ", "#"))]


def test_the_page_quotes_the_example():
    assert len(QUOTED) >= 5


@pytest.mark.parametrize("block", QUOTED, ids=lambda block: block.split("\n")[0])
def test_every_quoted_line_stands_in_the_example(block):
    known = set(statements(EXAMPLE))
    assert [line for line in statements(block) if line not in known and line != "..."] == []


def test_the_page_shows_every_file_of_the_template_as_it_is():
    """So that a reader of the page and one of the files learn the same."""
    files = {p.name: p.read_text() for p in TEMPLATE.iterdir() if p.is_file()}
    assert whole_algorithm() == files
