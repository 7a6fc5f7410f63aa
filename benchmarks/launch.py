"""Which servers are measured: the options that several benchmarks share.

``--workers`` is the RLX server's own option. ``--checkout`` runs the servers of another checkout of
this project, so that two commits can be measured in turn with the same clients; ``--server-option``
gives its RLX server options that this checkout does not know. Servers from before ``--workers``:

    --checkout ../old --server-option inference=batched --workers none
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

REPOSITORY = Path(__file__).parent.parent

#: A worker for each connection; a worker a core; the RLX server gets no ``--workers``.
CONNECTION, AUTO, UNSET = "connection", "auto", "none"

#: One of the three above, or how many workers.
Workers: TypeAlias = str | int


@dataclass(frozen=True)
class Launch:
    """The checkout that servers come from, and more options of its RLX server."""

    checkout: Path = REPOSITORY
    #: By name, without dashes.
    options: dict[str, Any] = field(default_factory=dict)


def launch_of(arguments: argparse.Namespace, workers: Workers) -> Launch:
    """Return the launch that the options of ``add_launch`` and ``workers`` ask for."""
    return Launch(arguments.checkout, {**dict(arguments.server_options), **option_for(workers)})


def option_for(workers: Workers) -> dict[str, Workers]:
    """Return the option of the RLX server that asks for ``workers``, if there is one."""
    return {} if workers == UNSET else {"workers": workers}


def add_workers(
    parser: argparse.ArgumentParser, default: Sequence[Workers] = (CONNECTION, AUTO)
) -> None:
    """Add ``--workers``, of which each value is measured, and ``--most-workers``."""
    parser.add_argument("--workers", nargs="+", type=workers_of, default=default, metavar="W",
                        help="of the RLX server: connection, auto or a number; none leaves the "
                        f"option out (default: {' '.join(map(str, default))})")  # fmt: skip
    parser.add_argument("--most-workers", type=int, default=sys.maxsize, metavar="N",
                        help="skip what needs more; each takes a second or two of a core to start"
                        )  # fmt: skip


def add_launch(parser: argparse.ArgumentParser) -> None:
    """Add ``--checkout`` and ``--server-option``."""
    parser.add_argument("--checkout", type=checkout_of, default=REPOSITORY, metavar="DIR",
                        help="run the servers of this checkout; its protocol buffers must be "
                        "built (default: the checkout of this program)"
                        )  # fmt: skip
    parser.add_argument("--server-option", nargs="+", type=option_of, default=[],
                        metavar="KEY=VALUE", dest="server_options",
                        help="more options of the RLX server, without dashes")  # fmt: skip


def workers_of(text: str) -> Workers:
    """Read a value of ``--workers``."""
    if text in (CONNECTION, AUTO, UNSET):
        return text
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(
            f"must be connection, auto, none, or a number from 1, is {text!r}"
        )
    return int(text)


def checkout_of(text: str) -> Path:
    """Read a folder that holds a checkout of this project."""
    directory = Path(text).resolve()
    if not (directory / "relaax" / "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"{directory} is not a checkout of this project")
    return directory


def option_of(text: str) -> tuple[str, Any]:
    """Read ``key=value``, its value in YAML."""
    key, is_there, value = text.partition("=")
    if not is_there:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, is {text!r}")
    return key, yaml.safe_load(value)
