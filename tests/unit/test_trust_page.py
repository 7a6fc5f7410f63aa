"""The page about trust in learning: each line of its tables has a test that is there."""

import re

import pytest
from processes import REPOSITORY

PAGE = REPOSITORY / "docs" / "trust_in_learning.md"

ROWS = [
    line
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| what may be |"))
]


def test_the_page_has_tables():
    assert len(ROWS) > 40


@pytest.mark.parametrize("row", ROWS)
def test_each_line_names_tests_that_are_there(row):
    named = re.findall(r"`((?:unit|integration|learning)/[\w/]+\.py)`", row.split(" | ")[-1])
    assert named
    assert all((REPOSITORY / "tests" / name).is_file() for name in named)
