"""What clients that behave badly cost those that play.

    python benchmarks/neighbours.py
    python benchmarks/neighbours.py --workers connection --connections 20

Connections with one environment each offer ``--rate`` steps a second. In every second window others
are there, too:

    strangers    200 connections a second that say nothing
    visitors     connections that come, play three steps and stay for a while, ``--visits`` a
                 second; up to 1,000 are there at a time
    trickles     200 connections that send a byte a second
    giants       connections that send frames of the largest size that is allowed, one after the
                 other: one that is no message, and one of JSON; and two of 64 MiB, which are not
    floods       connections that send metrics as fast as they can
    together     all of these

The windows between, with players alone, are what each is compared with: latency (50th and 99th
percentile) begins when a step is due. ``lost`` counts players whose connections were closed; there
should be none. All of them, and the servers, share this machine, so that what the neighbours' own
processes take is a part of what is seen.
"""

import argparse
import contextlib
import itertools
import multiprocessing
import re
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cells import Cell
from clients import Figures, Window
from launch import AUTO, add_launch, add_workers, launch_of
from offered_load import ORDER_S, Messages, figures_within, offered_load
from processes import allow_many_files, end_on_sigterm, kill, start_child
from report import Results, add_json, parser_of
from servers import running_servers, temporary_directory

from relaax.errors import ProtocolError
from relaax.protocol import FrameConnection, binary
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES

#: Connections a second that say nothing, and how many of them stay.
STRANGERS, STRANGERS_STAY = 200, 2000

#: Connections that send a byte a second, and visitors that are there at a time.
TRICKLES, VISITORS = 200, 1000

#: Connections that send as often as they can.
FLOODS = 2

#: Between the begin of the neighbours and that of their window.
SETTLE_S = 3.0

GIANT_BYTES = DEFAULT_MAX_FRAME_BYTES

#: Of visitors and giants, until the server answers.
_ANSWER_S = 10.0

#: Takes the server's address, messages of players, and visitors a second.
Behaviour = Callable[[tuple[str, int], Messages, float], None]


@dataclass(frozen=True)
class Row:
    """The players' figures in one window."""

    neighbours: str
    workers: str | int
    connections: int
    figures: Figures
    #: p99 beside that of the mean of the windows before and after, without neighbours.
    times: float | None = None
    lost: int = 0


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    allow_many_files()
    results = Results(arguments.json)
    print(HEADINGS, flush=True)
    for workers in arguments.workers:
        for row in measure(workers, arguments):
            print(as_line(row), flush=True)
            results.add(row)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--connections", type=int, default=100, help="that play (default 100)")
    parser.add_argument("--rate", type=float, default=10.0,
                        help="steps a second that each of them offers (default 10)")  # fmt: skip
    parser.add_argument("--visits", type=float, default=20.0,
                        help="visitors a second (default 20)")  # fmt: skip
    parser.add_argument("--neighbours", nargs="+", choices=NEIGHBOURS, default=list(NEIGHBOURS))
    parser.add_argument("--seconds", type=float, default=10.0, help="of a window (default 10)")
    parser.add_argument("--processes", type=int, default=1, help="of players (default 1)")
    add_workers(parser, default=(AUTO,))
    add_launch(parser)
    add_json(parser, "neighbours")
    return parser.parse_args()


def measure(workers: str | int, arguments: argparse.Namespace) -> list[Row]:
    """Return a row for the players alone, and one for each kind of neighbours."""
    cell = Cell("cartpole", workers, 2, arguments.connections, 1)
    section = {**cell.section, "seed": 1, "learn": False}
    launch = launch_of(arguments, workers)
    with (
        temporary_directory() as name,
        running_servers(Path(name), section, launch) as servers,
        offered_load(servers.rlx_server_url, cell, arguments.processes) as load,
    ):
        begin = time.monotonic() + ORDER_S + SETTLE_S
        step_s = arguments.seconds + SETTLE_S
        windows = [
            Window(begin + number * step_s, begin + number * step_s + arguments.seconds)
            for number in range(2 * len(arguments.neighbours) + 1)
        ]
        load.play(windows[-1].end, arguments.rate)
        for window, neighbours in zip(windows[1::2], arguments.neighbours, strict=True):
            time.sleep(max(0.0, window.begin - SETTLE_S - time.monotonic()))
            with beside(NEIGHBOURS[neighbours], servers.rlx_server_url, cell, arguments.visits):
                window.wait_for_end()
        played = load.played()
    alone = [figures_within(played, window) for window in windows[::2]]
    rows = [Row("none", workers, cell.connections, alone[0])]
    for number, neighbours in enumerate(arguments.neighbours):
        figures = figures_within(played, windows[2 * number + 1])
        before = (alone[number].p99_ms + alone[number + 1].p99_ms) / 2
        times = figures.p99_ms / before
        rows.append(Row(neighbours, workers, cell.connections, figures, times, played.lost))
    return rows


@contextlib.contextmanager
def beside(behaviours: Sequence[Behaviour], url: str, cell: Cell, visits: float) -> Iterator[None]:
    """Let a process behave in each of these ways meanwhile."""
    host, _, port = url.rpartition(":")
    context = multiprocessing.get_context("fork")
    values = ((host, int(port)), Messages.of(cell.observation), visits)
    children = [start_child(context, behave, *values) for behave in behaviours]
    try:
        yield
    finally:
        kill(children)


def strangers(place: tuple[str, int], messages: Messages, visits: float) -> None:
    """Connect again and again, and say nothing."""
    kept: deque[socket.socket] = deque()
    for _ in turns(STRANGERS):
        with contextlib.suppress(OSError):
            kept.append(socket.create_connection(place, _ANSWER_S))
        if len(kept) > STRANGERS_STAY:
            kept.popleft().close()


def visitors(place: tuple[str, int], messages: Messages, visits: float) -> None:
    """Come, play three steps, stay, and go."""
    kept: deque[FrameConnection] = deque()
    for _ in turns(visits):
        with contextlib.suppress(OSError, ProtocolError, binary.Error):
            kept.append(visit(place, messages))
        if len(kept) > VISITORS:
            kept.popleft().close()


def turns(rate: float) -> Iterator[None]:
    """Yield so often a second, without end; late ones are made up for."""
    due = time.monotonic()
    while True:
        yield
        due += 1 / rate
        time.sleep(max(0.0, due - time.monotonic()))


def visit(place: tuple[str, int], messages: Messages) -> FrameConnection:
    """Play three steps on a new connection."""
    frames = FrameConnection(socket.create_connection(place, _ANSWER_S))
    try:
        frames.send(binary.encode_hello(binary.Hello("visitor", "benchmark")))
        for message in (messages.start, messages.step, messages.step, messages.step):
            frames.receive(_ANSWER_S)
            frames.send(message)
        frames.receive(_ANSWER_S)
    except BaseException:
        frames.close()
        raise
    return frames


def trickles(place: tuple[str, int], messages: Messages, visits: float) -> None:
    """Send a byte a second on many connections."""
    hello = binary.encode_hello(binary.Hello("trickle", "benchmark"))
    data = struct.pack("<I", len(hello)) + hello
    socks: list[socket.socket | None] = [None] * TRICKLES
    sent = [0] * TRICKLES
    for _ in turns(1.0):
        for number, sock in enumerate(socks):
            try:
                if sock is None or sent[number] == len(data):
                    socks[number], sent[number] = socket.create_connection(place, _ANSWER_S), 0
                else:
                    sock.send(data[sent[number] : sent[number] + 1])
                    sent[number] += 1
            except OSError:
                socks[number] = None


def giants(place: tuple[str, int], messages: Messages, visits: float) -> None:
    """Send frames of the largest size, which are refused: as soon as they begin, or when parsed."""
    pairs = [frames_of(most_bytes_of(place)), frames_of(GIANT_BYTES)]
    for nothing, brackets in itertools.cycle(pairs):
        socks = []
        with contextlib.suppress(OSError, ProtocolError):
            for _ in range(2):
                socks.append(socket.create_connection(place, _ANSWER_S))
            greet(FrameConnection(socks[0]), "giant")
            send_together({socks[0]: nothing, socks[1]: brackets})
            for sock in socks:
                sock.settimeout(_ANSWER_S)
                sock.recv(1)
        for sock in socks:
            sock.close()


def most_bytes_of(place: tuple[str, int]) -> int:
    """Return how large a frame a server takes, which it says when it refuses a larger one."""
    sock = socket.create_connection(place, _ANSWER_S)
    frames = FrameConnection(sock)
    with contextlib.closing(frames):
        greet(frames, "giant")
        sock.send(struct.pack("<I", GIANT_BYTES))
        try:
            binary.decode_answers(frames.receive(_ANSWER_S) or b"")
        except binary.Error as error:
            if told := re.search(r"1 to (\d+) are allowed", error.text):
                return int(told[1])
            raise
    raise SystemExit(f"a frame of {GIANT_BYTES} bytes is answered")


def frames_of(size: int) -> tuple[bytes, bytes]:
    """Return two frames of this size that are worth nothing: no message, and JSON."""
    head = struct.pack("<I", size)
    brackets = b'["act","[' + b"[0]," * (size // 4)
    return head + b"\x03" + bytes(size - 1), head + brackets[:size]


def floods(place: tuple[str, int], messages: Messages, visits: float) -> None:
    """Send metrics, which are not answered, as fast as the server takes them."""
    metric = binary.encode_metric(binary.Metric("flood", 1.0))
    many = (struct.pack("<I", len(metric)) + metric) * 1000
    while True:
        socks = []
        with contextlib.suppress(OSError, ProtocolError):
            for _ in range(FLOODS):
                socks.append(socket.create_connection(place, _ANSWER_S))
                greet(FrameConnection(socks[-1]), "flood")
            while True:
                send_together(dict.fromkeys(socks, many))
        for sock in socks:
            sock.close()


def greet(frames: FrameConnection, name: str) -> None:
    """Say hello, and wait for the welcome."""
    frames.send(binary.encode_hello(binary.Hello(name, "benchmark")))
    frames.receive(_ANSWER_S)


def send_together(data: Mapping[socket.socket, bytes]) -> None:
    """Send its data on each connection, a piece each in turn; OSError when one is lost."""
    rest = {sock: memoryview(each) for sock, each in data.items()}
    selector = selectors.DefaultSelector()
    with contextlib.closing(selector):
        for sock in data:
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_WRITE)
        while rest:
            for key, _ in selector.select(_ANSWER_S):
                ready: Any = key.fileobj
                with contextlib.suppress(BlockingIOError):
                    rest[ready] = rest[ready][ready.send(rest[ready][: 2**20]) :]
                if not rest[ready]:
                    del rest[ready]
                    selector.unregister(ready)


ALL = (strangers, visitors, trickles, giants, floods)

NEIGHBOURS: dict[str, Sequence[Behaviour]] = {
    **{behave.__name__: (behave,) for behave in ALL},
    "together": ALL,
}

HEADINGS = (
    f"{'neighbours':<12}{'workers':<11}{'conn':>6}{'steps/s':>9}{'p50 ms':>9}{'p99 ms':>9}"
    f"{'p99 / alone':>13}{'lost':>6}"
)


def as_line(row: Row) -> str:
    figures = row.figures
    times = "" if row.times is None else f"{row.times:.2f}"
    return (
        f"{row.neighbours:<12}{row.workers:<11}{row.connections:>6}{figures.steps_per_s:>9,.0f}"
        f"{figures.p50_ms:>9.2f}{figures.p99_ms:>9.2f}{times:>13}{row.lost:>6}"
    )


if __name__ == "__main__":
    main()
