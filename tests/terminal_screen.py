"""What a terminal shows of the characters that a program has written."""

import re

_PARTS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|.", re.DOTALL)


def on_screen(shown: str, columns: int = 10_000) -> list[str]:
    """Return the rows of a terminal that knows CR, LF, colours, "erase" and "up".

    The row of the cursor is left out when it is empty.
    """
    screen = _Screen(columns)
    for part in _PARTS.findall(shown):
        screen.take(part)
    rows = ["".join(row).rstrip() for row in screen.rows]
    return rows if rows[-1] else rows[:-1]


class _Screen:
    def __init__(self, columns: int) -> None:
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0
        self._columns = columns

    def take(self, part: str) -> None:
        if part == "\n":
            self._down()
        elif part == "\r":
            self.column = 0
        elif part == "\x1b[K":
            del self.rows[self.row][self.column :]
        elif part == "\x1b[J":
            del self.rows[self.row][self.column :]
            del self.rows[self.row + 1 :]
        elif part.startswith("\x1b") and part.endswith("A"):
            self.row = max(0, self.row - int(part[2:-1] or 1))
        elif part.startswith("\x1b"):
            assert part.endswith("m"), f"the test's terminal does not know {part!r}"
        else:
            self._put(part)

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def _put(self, character: str) -> None:
        if self.column == self._columns:
            self._down()
            self.column = 0
        row = self.rows[self.row]
        row += " " * (self.column + 1 - len(row))
        row[self.column] = character
        self.column += 1
