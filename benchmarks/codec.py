"""How long one 84x84 frame of ALE/Boxing-v5 takes in version 1 of the RLX protocol, and its size.

    python benchmarks/codec.py

Version 1 carries arrays as compressed npz archives. Microseconds a call, the best of several
rounds: ``write`` and ``read`` by numpy (``savez_compressed``, ``load``) and by this project
(``relaax.protocol.json.npz``). ``bytes`` is the size before base64; version 2 of the protocol
carries the frame as it is.
"""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from inference import best_us
from launch import REPOSITORY
from processes import end_on_sigterm
from report import Results, add_json, parser_of

from relaax.protocol.json import npz

#: More than a frame, so that it is not refused.
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    who: str
    bytes: int
    write_us: float
    read_us: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="in a round (default 1000)")
    add_json(parser, "codec")
    arguments = parser.parse_args()
    end_on_sigterm()
    results = Results(arguments.json)
    frame = boxing_frame()
    print(f"{'':<14}{'bytes':>8}{'write us':>10}{'read us':>9}")
    for row in (
        measured("numpy", numpy_write, numpy_read, frame, arguments.calls),
        measured("this project", npz.dump, read, frame, arguments.calls),
    ):
        print(f"{row.who:<14}{row.bytes:>8,}{row.write_us:>10.1f}{row.read_us:>9.1f}", flush=True)
        results.add(row)
    print(f"{'version 2':<14}{frame.nbytes:>8,}")
    results.close()


def measured(
    who: str,
    write: Callable[[np.ndarray], bytes],
    read: Callable[[bytes], np.ndarray],
    frame: np.ndarray,
    calls: int,
) -> Row:
    archive = write(frame)
    assert np.array_equal(read(archive), frame)  # noqa: S101 - a wrong answer is not fast
    return Row(
        who,
        len(archive),
        best_us(partial(write, frame), calls),
        best_us(partial(read, archive), calls),
    )


def numpy_write(frame: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, frame)
    return file.getvalue()


def numpy_read(archive: bytes) -> np.ndarray:
    with np.load(io.BytesIO(archive)) as arrays:
        return arrays["arr_0"]


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


if __name__ == "__main__":
    main()
