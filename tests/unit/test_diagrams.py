"""The pictures of docs/images that docs/diagrams/draw has drawn are those of their sources."""

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
DRAWING = runpy.run_path(str(ROOT / "docs" / "diagrams" / "draw"))
SOURCES = sorted((ROOT / "docs" / "diagrams").glob("*.dot"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def picture(source: Path) -> Path:
    return ROOT / "docs" / "images" / f"{source.stem}.svg"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_picture_is_drawn_of_its_source_as_it_is_now(source: Path) -> None:
    assert DRAWING["stamp"](source) in picture(source).read_text(), "run make diagrams"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_picture_shows_the_words_of_its_source(source: Path) -> None:
    shown = "".join(ElementTree.parse(picture(source)).getroot().itertext()).replace("\xa0", " ")
    for label in re.findall(r'label="([^"]*)"', source.read_text()):
        for line in re.split(r"\\[nlr]", label):
            assert line.strip() in shown


def test_each_picture_has_a_source_and_is_on_a_page() -> None:
    pictures = {path.stem for path in (ROOT / "docs" / "images").glob("*.svg")}
    assert pictures == {path.stem for path in SOURCES}
    text = "".join(page.read_text() for page in PAGES)
    assert all(f"images/{name}.svg)" in text for name in pictures)
