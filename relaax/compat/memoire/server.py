"""``ReplayMemoryServer``: a memory that clients reach (seed 001, under its names)."""

import threading
from collections.abc import Sequence
from pathlib import Path
from time import time
from typing import IO

import numpy.typing as npt

from relaax.compat.memoire.entry import LAST, Batch
from relaax.compat.memoire.memory import LEASE_S, ReplayMemory
from relaax.compat.memoire.proxy import (
    HIGH_WATER_MARK,
    Bind,
    Conn,
    Handlers,
    Mode,
    Proxy,
    is_inproc,
)
from relaax.compat.memoire.service import MemoireServicer, Topics, message_of
from relaax.errors import ConfigurationError
from relaax.net.payloads import Buffer
from relaax.replay.service import ReplayServicer, method_handlers
from relaax.replay.table import Sample

#: Characters of a message.
LONGEST = 65_536


class LogFile:
    """Lines ``time,uuid,message``, each written at once; without a file there are none."""

    def __init__(self) -> None:
        self._file: IO[str] | None = None
        self._lock = threading.Lock()

    def open(self, path: str | Path, mode: str = "a") -> None:
        """Write to ``path`` from now on: anew with mode ``w``, behind its content with ``a``."""
        if mode not in ("w", "a"):
            raise ConfigurationError(f"the mode of a log file is 'w' or 'a', not {mode!r}")
        file = Path(path).open(mode, buffering=1, encoding="utf-8")  # noqa: SIM115 - ``close`` does
        self.close()
        self._file = file

    def write(self, uuid: str, message: str) -> None:
        """Write a line, if there is a file; ValueError for a message that is too long."""
        if len(message) > LONGEST:
            raise ValueError(f"a message has at most {LONGEST} characters, not {len(message)}")
        line = "\\n".join(f"{uuid},{message}".rstrip("\n").splitlines())
        with self._lock:
            if self._file is not None:
                self._file.write(f"{time():.6f},{line}\n")

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


class ReplayMemoryServer(Proxy):
    """A ``ReplayMemory`` of ``n_slot`` clients, in the learner's process.

    ``entry``, ``max_step`` and ``n_slot`` are as ``ReplayMemory`` takes them. Every endpoint that
    is bound answers all calls. Each ``main`` runs until ``close`` is called; gRPC's own threads do
    the work, so that one thread for each endpoint is enough.
    """

    def __init__(
        self, entry: Sequence[npt.ArrayLike], max_step: int, n_slot: int, lease_s: float = LEASE_S
    ) -> None:
        super().__init__()
        self.rem = ReplayMemory(entry, max_step, n_slot, lease_s=lease_s)
        self.pub_endpoint = ""
        #: Calls at once, beyond which clients wait and try again.
        self.pub_hwm = self.rep_hwm = self.pull_hwm = HIGH_WATER_MARK
        #: Has no effect.
        self.pull_buf_size = 0
        self._topics = Topics()
        self._log = LogFile()
        # Fields of the user's own may be anything: a mask of actions has infinities.
        self._replay = ReplayServicer(self.rem.replay, finite=LAST)
        memoire = MemoireServicer(self.rem, self._topics, self._log.write)
        self._handlers: Handlers = [method_handlers(self._replay), memoire.handlers()]

    def rep_worker_main(self, endpoint: str, mode: Mode = Bind) -> None:
        """Answer calls at ``endpoint``; with ``Conn``, calls of a proxy of this server."""
        self._work_at(endpoint, mode, self.rep_hwm)

    def pull_worker_main(self, endpoint: str, mode: Mode = Bind) -> None:
        """Take entries at ``endpoint``; with ``Conn``, entries from a proxy of this server."""
        self._work_at(endpoint, mode, self.pull_hwm)

    def bind(self, endpoint: str, hwm: int = HIGH_WATER_MARK) -> None:
        """Answer calls at ``endpoint`` from now on; OSError if the port is taken."""
        self._open(endpoint, self._handlers, hwm)

    def get_data(self, batch_size: int, timeout_s: float | None = None) -> Batch:
        """Draw rollouts, and wait for entries if there are none, as ``ReplayMemory`` does."""
        return self.rem.get_data(batch_size, timeout_s)

    def sample(self, count: int, timeout_s: float | None = None) -> Sample:
        """Draw as ``get_data`` does; return the fields by name, and how probable each item was."""
        return self.rem.sample(count, timeout_s)

    def pub_bytes(self, topic: str | Buffer, data: Buffer | str | None = None) -> None:
        """Publish ``data``, or with one argument a message of the topic "".

        Each topic keeps its newest message for later subscribers.
        """
        name, message = message_of(topic, data)
        if self.pub_endpoint:
            self.bind(self.pub_endpoint, self.pub_hwm)
        elif not self._ports:
            raise ConfigurationError("set pub_endpoint, or bind another one, before you publish")
        self._topics.publish(name, message)

    def set_logfile(self, logfile_path: str | Path, mode: str = "a") -> None:
        """Write clients' messages to a file: anew with mode "w", behind its content with "a".

        Lines are ``time,uuid,message``.
        """
        self._log.open(logfile_path, mode)

    def print_info(self) -> None:
        """Print the sizes, fields and counts of the memory."""
        info = self.rem
        fields = ", ".join(f"{name} {column}" for name, column in info.schema.columns.items())
        print(f"{info.num_slot} slots of {info.max_step} entries: {fields}")
        print(", ".join(f"{key} {value:g}" for key, value in self.rem.replay.stats().items()))

    def close(self) -> None:
        """Close all ports, and let every ``main`` and every draw that waits end."""
        self.rem.close()
        self._topics.close()
        super().close()
        self._replay.forget_memory()
        self._log.close()

    def _behind(self, front_mode: Mode, back_ep: str, back_mode: Mode) -> Handlers:
        """Behind ``inproc://`` are the workers of this server itself."""
        if is_inproc(back_ep):
            return self._handlers
        return super()._behind(front_mode, back_ep, back_mode)

    def _work_at(self, endpoint: str, mode: Mode, hwm: int) -> None:
        if mode is Conn and not is_inproc(endpoint):
            raise ConfigurationError(
                f"a worker that connects to {endpoint!r} would answer a proxy's calls: let the "
                "worker bind, and the proxy connect to it"
            )
        if not is_inproc(endpoint):
            self.bind(endpoint, hwm)
        self._closed.wait()
