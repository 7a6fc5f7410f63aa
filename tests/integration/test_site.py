"""The site of the documentation: ``make docs`` builds it, and every link in it leads somewhere."""

import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from processes import REPOSITORY

pytestmark = pytest.mark.integration

#: Pages for others than readers of the site: the README of the folder that relaax-new makes.
LEFT_OUT = "relaax/"


class Page(HTMLParser):
    """The links of a page, and the anchors that others may link to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


@pytest.fixture(name="site", scope="module")
def _site() -> Path:
    """Build the site and return its folder; warnings, such as of unknown pages, are errors."""
    made = subprocess.run(
        ["make", "docs"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return REPOSITORY / "build" / "site"


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 30
    broken = [
        f"{path.relative_to(site)}: {link}"
        for path, page in pages.items()
        for link in page.links
        if not _leads_somewhere(link, path, pages)
    ]
    assert not broken


def _leads_somewhere(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True  # elsewhere in the world
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return False
    return not parts.fragment or parts.fragment in pages[target].anchors


def test_a_page_has_one_title(site: Path) -> None:
    """What is on a page is listed beside it: all below its title, and nothing before another."""
    titles = {
        str(path.relative_to(site)): path.read_text().count("<h1")
        for path in site.rglob("*.html")
        if path.name != "404.html"
    }
    assert set(titles.values()) == {1}, titles


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text()
        assert 'src="http' not in text, path
        assert 'rel="stylesheet" href="http' not in text, path


def test_the_navigation_has_every_page_for_readers_once() -> None:
    listed = list(_files(yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text())["nav"]))
    known = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for_readers = {path for path in known if not path.startswith(LEFT_OUT)}
    assert sorted(listed) == sorted(for_readers)


def _files(nav: object) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list():
            for part in nav:
                yield from _files(part)
        case dict():
            for part in nav.values():
                yield from _files(part)
