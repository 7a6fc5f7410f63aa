"""Write docs/licences.md: the licence of every package that ``make install`` installs.

Licences are read from the metadata of what is installed here, and versions from the lock file.
"""

from collections import defaultdict
from importlib.metadata import metadata
from pathlib import Path

from locks import read

PAGE = Path(__file__).parent.parent / "docs" / "licences.md"

#: Where the metadata names none, but the package has the text of one.
READ_BY_HAND = {"mongoquery": "Unlicense", "namex": "Apache-2.0"}

_BEGIN = """# Licences

Every package that `make install` installs ([lock files](dependencies.md#lock-files)), with the
licence that its own metadata names. Where there are two versions, the first is for Python 3.11, and
the second for later ones. Images have of these packages what they need; that of the servers has
tensorflow-cpu in the place of tensorflow, under the same licence, and with `tensorflow[and-cuda]`
NVIDIA's libraries, under NVIDIA's own terms. ale-py, which has the emulator of the Atari games, is
under the GNU General Public License: environments import it, and no server does. `make licences`
writes this page.

| package | version | licence |
| --- | --- | --- |
"""


def page() -> str:
    """Return the page as it should be."""
    versions: dict[str, list[str]] = defaultdict(list)
    for pin in read("run.txt"):
        versions[pin.name].append(pin.version)
    return _BEGIN + "".join(
        f"| {name} | {', '.join(listed)} | {licence(name)} |\n"
        for name, listed in sorted(versions.items())
    )


def licence(name: str) -> str:
    """Return what the metadata of an installed package says; ValueError if that is nothing."""
    said = metadata(name)
    expressions = said.get_all("License-Expression") or []
    classified = [
        line.rpartition(" :: ")[2]
        for line in said.get_all("Classifier") or []
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    # Some have the whole text of the licence there.
    named = [text.strip().partition("\n")[0] for text in said.get_all("License") or []]
    found = ", ".join(expressions or classified or named) or READ_BY_HAND.get(name)
    if not found:
        raise ValueError(f"the metadata of {name} names no licence")
    return found


if __name__ == "__main__":
    PAGE.write_text(page())
