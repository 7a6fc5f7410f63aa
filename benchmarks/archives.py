"""How long an array takes to write and read in version 1 of the RLX protocol, and its size.

    python benchmarks/archives.py

Version 1 carries arrays as compressed npz archives. The array is one 84x84 frame of ALE/Boxing-v5.
Microseconds a call, the best of several rounds, to write and to read it, by numpy
(``savez_compressed``, ``load``) and by this project (``relaax.protocol.json.npz``). ``bytes`` is
the size before base64; version 2 of the protocol carries the frame as it is.
"""

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from launch import REPOSITORY
from processes import end_on_sigterm
from report import Results, add_json, parser_of
from timing import best_us

from relaax.protocol.json import npz

#: More than a frame, so that it is not refused.
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    library: str
    bytes: int
    write_us: float
    read_us: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="in a round (default 1000)")
    add_json(parser, "archives")
    arguments = parser.parse_args()
    end_on_sigterm()
    results = Results(arguments.json)
    frame = boxing_frame()
    print(HEADINGS, flush=True)
    for row in rows(frame, arguments.calls):
        print(as_line(row), flush=True)
        results.add(row)
    print(f"{'version 2':<14}{frame.nbytes:>8,}")
    results.close()


def rows(frame: np.ndarray, calls: int) -> Iterator[Row]:
    libraries: dict[str, tuple[Callable[[np.ndarray], bytes], Callable[[bytes], np.ndarray]]] = {
        "numpy": (numpy_write, numpy_read),
        "this project": (npz.dump, read),
    }
    for library, (write, load) in libraries.items():
        archive = write(frame)
        assert np.array_equal(load(archive), frame)  # noqa: S101 - a wrong answer is not fast
        yield Row(
            library,
            len(archive),
            best_us(partial(write, frame), calls),
            best_us(partial(load, archive), calls),
        )


def numpy_write(frame: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, frame)
    return file.getvalue()


def numpy_read(archive: bytes) -> np.ndarray:
    with np.load(io.BytesIO(archive)) as arrays:
        frame: np.ndarray = arrays["arr_0"]
    return frame


def read(archive: bytes) -> np.ndarray:
    return npz.load(archive, MOST_BYTES)


def boxing_frame() -> np.ndarray:
    """Return a frame of the game a little after its start."""
    sys.path.insert(0, str(REPOSITORY / "environments" / "OpenAI_Gym"))
    from atari import AtariFactory

    game: Any = AtariFactory("ALE/Boxing-v5", None, {})()
    frame, _ = game.reset(seed=1)
    game.action_space.seed(1)
    for _ in range(50):
        frame, *_ = game.step(game.action_space.sample())
    return np.asarray(frame)


HEADINGS = f"{'':<14}{'bytes':>8}{'write us':>10}{'read us':>9}"


def as_line(row: Row) -> str:
    return f"{row.library:<14}{row.bytes:>8,}{row.write_us:>10.1f}{row.read_us:>9.1f}"


if __name__ == "__main__":
    main()
