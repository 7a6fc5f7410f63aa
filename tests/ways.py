"""The files that something passes on its way, counted with a profiler, and those of a page."""

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from processes import REPOSITORY

PAGE = REPOSITORY / "docs" / "architecture.md"

#: Folders whose files are counted. Those of the first one are named without it.
FOLDERS = tuple(f"{REPOSITORY / name}/" for name in ("relaax", "algorithms"))


class Files:
    """The files whose functions run meanwhile, in this thread and in others that ``note``.

    ``event`` is the profiler's name of the moment; ``counts`` may leave out calls by their frames.
    """

    def __init__(
        self, event: str = "call", counts: Callable[[FrameType], bool] = lambda frame: True
    ) -> None:
        self._event, self._counts = event, counts
        self.found: set[str] = set()
        self._is_noting = False

    def __enter__(self) -> "Files":
        self._is_noting = True
        sys.setprofile(self.note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self._is_noting = False

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take note of a call, as ``sys.setprofile`` and ``threading.setprofile`` report it."""
        if not self._is_noting or event != self._event:
            return
        path = frame.f_code.co_filename
        if path.startswith(FOLDERS) and self._counts(frame):
            self.found.add(path.removeprefix(f"{REPOSITORY}/").removeprefix("relaax/"))


def documented(section: str, table: int = 0) -> set[str]:
    """Return the first file of each row in a table of a section."""
    text = PAGE.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    tables = re.findall(r"^\|.*?(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    rows = [re.search(r"`(?:relaax/)?([\w/]+\.py)`", row) for row in tables[table].splitlines()]
    return {row[1] for row in rows if row is not None}
