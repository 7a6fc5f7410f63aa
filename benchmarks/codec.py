"""How long messages of version 2 of the RLX protocol take to encode and decode, and their size.

    python benchmarks/codec.py

Microseconds a call, the best of several rounds, of a message of steps and its answer, on both ends
of a connection, while all environments go on. ``messages`` are the functions that handle any
message (``relaax.protocol.binary.messages``); ``codec`` are ``ClientCodec`` and ``ServerCodec``,
with their short cut for messages that differ from the one before in rewards, observations and
actions only. ``bytes`` is the size of the message that is encoded or decoded.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from cells import SHAPES
from processes import end_on_sigterm
from report import Results, add_json, parser_of
from timing import best_us

from relaax.protocol.binary import (
    ClientCodec,
    ServerCodec,
    decode_answers,
    decode_steps,
    encode_answers,
    encode_steps,
)
from relaax.steps import Steps


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    shape: str
    environments: int
    operation: str
    bytes: int
    messages_us: float
    codec_us: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="in a round (default 1000)")
    parser.add_argument("--environments", type=int, nargs="+", default=[1, 16, 64],
                        help="of a message (default 1 16 64)")  # fmt: skip
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    add_json(parser, "codec")
    arguments = parser.parse_args()
    end_on_sigterm()
    results = Results(arguments.json)
    print(HEADINGS, flush=True)
    for shape in arguments.shapes:
        for environments in arguments.environments:
            for row in measured(shape, environments, arguments.calls):
                print(as_line(row), flush=True)
                results.add(row)
    results.close()


#: No episode ends.
NO_SCORES = np.zeros(0)

#: What is done, to how many bytes, with ``messages`` and with a codec.
Operation: TypeAlias = tuple[str, int, Callable[[], Any], Callable[[], Any]]


def measured(shape: str, environments: int, calls: int) -> Iterator[Row]:
    _, observation = SHAPES[shape]
    observations = np.stack([observation] * environments)
    for operation, size, with_messages, with_codec in operations(observations):
        microseconds = best_us(with_messages, calls), best_us(with_codec, calls)
        yield Row(shape, environments, operation, size, *microseconds)


def operations(observations: np.ndarray) -> list[Operation]:
    """Return what both ends do with a message of ``observations`` [N, ...] and its answer."""
    count = len(observations)
    numbers, flags = np.arange(count), np.zeros(count, np.uint8)
    rewards, actions = np.ones(count), np.zeros(count, np.int64)

    def encode() -> bytes:
        return encode_steps(Steps(numbers, flags, rewards, observations, finals=()))

    def answer() -> bytes:
        return encode_answers(numbers, flags, actions, NO_SCORES)

    client, server = ClientCodec(count), ServerCodec(count)
    encode_all = partial(client.encode_all, rewards, observations)
    answer_last = partial(server.encode, actions, NO_SCORES)
    message, answered = encode(), answer()
    assert encode_all() == message  # noqa: S101 - a wrong message is not fast
    server.decode(message)
    assert answer_last() == answered  # noqa: S101 - the same
    size, answer_size = len(message), len(answered)
    return [
        ("encode steps", size, encode, encode_all),
        (
            "decode steps",
            size,
            partial(decode_steps, message, count),
            partial(server.decode, message),
        ),
        ("encode answer", answer_size, answer, answer_last),
        (
            "decode answer",
            answer_size,
            partial(decode_answers, answered),
            partial(client.decode, answered),
        ),
    ]


HEADINGS = (
    f"{'shape':<10}{'envs':>5}  {'':<14}{'bytes':>9}{'messages us':>13}{'codec us':>10}{'times':>7}"
)


def as_line(row: Row) -> str:
    return (
        f"{row.shape:<10}{row.environments:>5}  {row.operation:<14}{row.bytes:>9,}"
        f"{row.messages_us:>13.1f}{row.codec_us:>10.1f}{row.messages_us / row.codec_us:>7.1f}"
    )


if __name__ == "__main__":
    main()
