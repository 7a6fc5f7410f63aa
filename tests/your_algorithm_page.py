"""The whole algorithm that docs/your_algorithm.md shows, file by file."""

import re

from processes import REPOSITORY

PAGE = (REPOSITORY / "docs" / "your_algorithm.md").read_text()

_FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```$", re.MULTILINE | re.DOTALL)


def files_in(text: str) -> dict[str, str]:
    """The text of each file that a page shows, by its name."""
    return dict(_FILE.findall(text))


def whole_algorithm() -> dict[str, str]:
    """The text of each file of the page's first example, by its name."""
    return files_in(PAGE.partition("\n## The contract")[0])


def another_loss() -> dict[str, str]:
    """The text of each file that gives DA3C another loss, by its name."""
    return files_in(PAGE.partition("\n### Another loss for it")[2])
