"""What reads bytes of strangers. Each target raises what it does not promise."""

import contextlib
import hashlib
import io
import itertools
import json
import os
import socket
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError
from safetensors import numpy as safetensors

from fuzz import services
from relaax.checkpoints import BlobStore, CheckpointSaver
from relaax.checkpoints.manifest import parse, step_of_data
from relaax.configuration import load_parameter_server
from relaax.errors import CheckpointError, ConfigurationError, DamagedCheckpoint, ProtocolError
from relaax.learning.networks import Head, read_network
from relaax.net.access import Right, TokenFile
from relaax.net.access.tokens import digest_of
from relaax.parameters.sender_totals import SenderTotals
from relaax.protocol import binary
from relaax.protocol import json as rlx_json
from relaax.protocol.binary import Error
from relaax.protocol.connection import PeerClosed
from relaax.protocol.first_bytes import shown_token
from relaax.protocol.framing import FrameConnection
from relaax.protocol.json import npz
from relaax.replay.limiter import Limiter
from relaax.replay.process.replay_contents import Contents
from relaax.replay.replay import NotReady, Replay
from relaax.replay.schema import Column, Schema
from relaax.replay.selectors import Prioritized
from relaax.replay.specs import ReplaySpec
from relaax.replay.storage import Storage
from relaax.replay.table import Table
from relaax.replay.views import Transitions
from relaax.replay.writers import Writers
from relaax.server.rlx_server.entrance import Guard
from relaax.server.rlx_server.lobby import Lobby
from relaax.steps import TERMINATED, Steps

#: A limit for what one input may unpack to.
MOST_BYTES = 64 * 1024

#: What opens the guarded door.
TOKEN = "a-token-of-some-length-0123456789"  # noqa: S105

CORPUS = Path(__file__).parent / "corpus"

Target = Callable[[bytes], None]


def version_1(data: bytes) -> None:
    """Messages of version 1: a server's end, then a client's."""
    client = rlx_json.ClientCodec()
    client.encode(Steps(np.zeros(1, int), np.uint8([TERMINATED]), np.zeros(1), (), ()))
    for decode in (
        rlx_json.ServerCodec(MOST_BYTES).decode,
        rlx_json.ClientCodec().decode,
        client.decode,
    ):
        with contextlib.suppress(ProtocolError):
            decode(data)


def version_2(data: bytes) -> None:
    """Messages of version 2: what a server reads, twice, and what a client reads."""
    if not data:
        return  # no frame is empty
    codec = binary.ServerCodec(4)
    for decode in (
        binary.decode_hello,
        codec.decode,
        codec.decode,  # like the one before
        binary.decode_welcome,
        binary.decode_answers,
    ):
        with contextlib.suppress(ProtocolError, Error):
            decode(data)


def framing(data: bytes) -> None:
    """A connection's bytes, in two parts."""
    for receive in (FrameConnection.receive, FrameConnection.receive_now):
        ours, theirs = socket.socketpair()
        connection = FrameConnection(ours, MOST_BYTES, frame_timeout_s=5)
        with contextlib.closing(connection), theirs:
            theirs.sendall(data[: len(data) // 2])
            with contextlib.suppress(ProtocolError, PeerClosed):
                if receive is FrameConnection.receive_now:
                    receive(connection)
                theirs.sendall(data[len(data) // 2 :])
                theirs.shutdown(socket.SHUT_WR)
                while (payload := receive(connection)) is not None:
                    assert 0 < len(payload) <= MOST_BYTES


def entrance(data: bytes) -> None:
    """What a stranger sends to an RLX server, in two parts: one without tokens, one with them."""
    for tokens in (None, TokenFile(_token_file(f"server {TOKEN}\n".encode()))):
        ours, theirs = socket.socketpair()
        opened = partial(FrameConnection, max_frame_bytes=MOST_BYTES)
        lobby = Lobby(Guard(tokens, hello_timeout_s=60), opened)
        with theirs:
            lobby.enter(ours, "192.0.2.1:1")
            for part in (data[: len(data) // 2], data[len(data) // 2 :]):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    theirs.sendall(part)
                for served in lobby.proved(looks_at_all=True):
                    served.messages.close()
                    assert tokens is None or TOKEN.encode() in data
            lobby.turn_away()
            lobby.close()


def tokens(data: bytes) -> None:
    """A file of tokens, and what shows one."""
    with contextlib.suppress(ConfigurationError):
        file = TokenFile(_token_file(data))
        digests = map(digest_of, ("", "no"))
        assert not any(file.allows_digest(*pair) for pair in itertools.product(digests, Right))
    with contextlib.suppress(ProtocolError):
        shown_token(data)


def archive(data: bytes) -> None:
    """An array of version 1."""
    with contextlib.suppress(ProtocolError):
        assert npz.load(data, MOST_BYTES).nbytes <= MOST_BYTES


def configuration(data: bytes) -> None:
    """A YAML file of the parameter server."""
    path = _written(data, "fuzz.yaml")
    with contextlib.suppress(ConfigurationError), contextlib.redirect_stderr(io.StringIO()):
        load_parameter_server(["--config", str(path)])


def network(data: bytes) -> None:
    """A network's description, in YAML and in JSON."""
    for name in ("network.yaml", "network.json"):
        path = _written(data, name)
        with contextlib.suppress(ValueError):
            read_network(str(path), (84, 84, 4), (Head("policy", 2), Head("value", 1)))


def manifest(data: bytes) -> None:
    """A checkpoint's manifest: the file that it names lies beside it."""
    with contextlib.suppress(CheckpointError):
        found = parse(data, 42)
        assert step_of_data(found.data) == 42
        assert Path(found.data).name == found.data
        totals = found.totals()
        SenderTotals().restore(totals)
        assert all(sender > 0 and 0 <= total < 2**64 for sender, total in totals.items())


def snapshot(data: bytes) -> None:
    """What a replay server has saved, with a manifest that fits: tensors, then the replay's own."""
    replay = small_replay()
    contents = Contents(replay, ReplaySpec(SCHEMA, 32, {}), CheckpointSaver(_Blobs(data)))
    with contextlib.suppress(CheckpointError):
        if contents.restore():
            _go_on(replay)


def _go_on(replay: Replay) -> None:
    """Store so much that all that was restored is evicted, and draw meanwhile."""
    replay.open_writer("new", SCHEMA)
    for first in range(0, 48, 4):
        with contextlib.suppress(NotReady):
            keys = replay.sample("all", 4, 0.0).keys
            replay.update_priorities("all", keys, np.ones(4))
        rows = {"observation": np.ones((4, 2), np.float32), "reward": np.ones(4, np.float32)}
        replay.append("new", 0, first, rows, np.array([first == 0, 0, 0, 0], np.uint8))
    replay.contents()
    replay.close_writer("new")


class _Blobs(BlobStore):
    """A checkpoint of step 1 whose data is given."""

    def __init__(self, data: bytes) -> None:
        digest = hashlib.sha256(data).hexdigest()
        name = f"cp-1.{digest[:12]}.safetensors"
        columns = [f"{name} {column}" for name, column in SCHEMA.columns.items()]
        written = {
            "format": 1,
            "global_t": 1,
            "version": 0,
            "fingerprint": {"columns": columns, "capacity": 32, "rows": "by age", "tables": []},
            "data": name,
            "size": len(data),
            "sha256": digest,
            "relaax": "",
            "saved_at": "",
        }
        self._blobs = {name: data, "cp-1.json": json.dumps(written).encode()}

    def names(self) -> list[str]:
        return list(self._blobs)

    def folders(self) -> list[str]:
        return []

    def get(self, name: str) -> bytes:
        if name not in self._blobs:
            raise DamagedCheckpoint(f"{name} is missing")
        return self._blobs[name]

    def location(self) -> str:
        return "memory"

    def put(self, name: str, data: bytes) -> None:
        raise AssertionError

    delete = rename = put


SCHEMA = Schema({"observation": Column(np.dtype("<f4"), (2,)), "reward": Column(np.dtype("<f4"))})


def small_replay() -> Replay:
    """A replay of 32 steps with a table of transitions by priorities."""
    storage = Storage(SCHEMA, 32)
    selector = Prioritized(storage.capacity, 1.0, np.random.default_rng(0))
    table = Table(storage, Transitions(), selector, Limiter())
    return Replay(storage, {"all": table}, Writers(60))


def saved_replay() -> bytes:
    """A seed: some steps as they are saved."""
    replay = small_replay()
    replay.open_writer("a", SCHEMA)
    rows = {"observation": np.ones((4, 2), np.float32), "reward": np.ones(4, np.float32)}
    replay.append("a", 0, 0, rows, np.array([1, 0, 0, 2], np.uint8))
    return safetensors.save(replay.contents())


def _method(make_handlers: Callable[[], list[services.Method]]) -> Target:
    """The first byte says which method; the rest is its message, or many after each other."""

    def run(data: bytes) -> None:
        handlers = make_handlers()
        for part in services.calls_in(data):
            handler = handlers[part[0] % len(handlers)]
            try:
                request = handler.deserialize(part[1:])
            except (DecodeError, ValueError):
                continue
            with contextlib.suppress(services.Refused):
                handler.call(request)

    return run


def _token_file(data: bytes) -> Path:
    path = _written(data, "tokens")
    path.chmod(0o600)
    return path


def _written(data: bytes, name: str) -> Path:
    path = Path(_directory(), name)
    path.write_bytes(data)
    return path


def _directory() -> str:
    global _made  # noqa: PLW0603 - of this process, and never removed before its end
    if _made is None:
        _made = tempfile.TemporaryDirectory(prefix="fuzz-", dir=_memory())
    return _made.name


def _memory() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


_made: "tempfile.TemporaryDirectory[str] | None" = None

TARGETS: dict[str, Target] = {
    "version_1": version_1,
    "version_2": version_2,
    "framing": framing,
    "entrance": entrance,
    "tokens": tokens,
    "archive": archive,
    "parameter_server": _method(services.parameter_server),
    "published": _method(services.published),
    "shard": _method(services.shard),
    "replay": _method(lambda: services.replay(small_replay())),
    "inference": _method(services.inference),
    "names": _method(services.names),
    "memoire": _method(services.memoire),
    "configuration": configuration,
    "network": network,
    "manifest": manifest,
    "snapshot": snapshot,
}


def seeds(target: str) -> list[Path]:
    """Return the files of a target's corpus."""
    return sorted((CORPUS / target).iterdir())
