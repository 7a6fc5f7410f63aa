"""What all benchmarks share: a parser, rows in a JSON file, and how figures are written."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser whose ``--help`` is a module's docstring."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_json(parser: argparse.ArgumentParser, name: str) -> None:
    """Add ``--json``, the file that rows are written to; by default it is named ``name``."""
    parser.add_argument(
        "--json", type=Path, default=RESULTS / f"{name}.json", help="default %(default)s"
    )


class Results:
    """Rows in a JSON file, one a line; the file is complete after each of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[dict[str, Any]] = []
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, row: Any) -> None:
        """Append a row, a dataclass."""
        self._rows.append(asdict(row))
        lines = ",\n".join(json.dumps(each) for each in self._rows)
        self._path.write_text(f"[\n{lines}\n]\n")

    def close(self) -> None:
        """Print where the rows are."""
        print(f"\nwritten to {self._path}")


def figure(value: float) -> str:
    """Write a rate: one decimal below 10."""
    return f"{value:,.1f}" if value < 10 else f"{value:,.0f}"
