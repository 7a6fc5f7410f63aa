"""The two forms of DA3C share what they have in common, and copy nothing from one another."""

from pathlib import Path

from processes import REPOSITORY

#: So many equal lines, one after the other, are a copy.
LINES = 6


def runs_of(path: Path) -> set[tuple[str, ...]]:
    """Every ``LINES`` consecutive lines of a file, but for blank ones."""
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    return {tuple(lines[begin : begin + LINES]) for begin in range(len(lines) - LINES + 1)}


def runs_in(algorithm: str) -> set[tuple[str, ...]]:
    found = [runs_of(path) for path in (REPOSITORY / "algorithms" / algorithm).glob("*.py")]
    assert found
    return set().union(*found)


def test_no_six_lines_stand_in_both_algorithms():
    assert runs_in("da3c") & runs_in("da3c_cont") == set()
    assert runs_in("da3c") & runs_in("da3c")  # it would be found
