"""The whole algorithm that docs/surreal.md shows, file by file."""

from processes import REPOSITORY
from your_algorithm_page import files_in

PAGE = (REPOSITORY / "docs" / "surreal.md").read_text()


def whole_algorithm() -> dict[str, str]:
    """The text of each file, by its name."""
    return files_in(PAGE.partition("\n## Names there and here")[0])
