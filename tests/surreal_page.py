"""The whole algorithm that docs/surreal.md shows, file by file."""

from algorithms_page import files_in
from processes import REPOSITORY

PAGE = (REPOSITORY / "docs" / "surreal.md").read_text()


def whole_algorithm() -> dict[str, str]:
    """The text of each file, by its name."""
    return files_in(PAGE.partition("\n## Names there and here")[0])
