"""Which process saves to a store that has no locks."""

import os
import secrets
import socket

from relaax.errors import CheckpointError, DamagedCheckpoint
from relaax.server.common.saver.store import BlobStore

#: The blob that names the process that was the last to begin to save.
NAME = "owner"


class TakenOver(CheckpointError):
    """Another process has begun to save to the same place."""


class Ownership:
    """Lets a process change a store until another one begins to.

    A store far away cannot lock; a process that is cut off, and was replaced by another one, may
    come back. The one that began to save last goes on, and the others save nothing there any more.
    What they were just sending arrives.
    """

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._own = f"pid {os.getpid()} on {socket.gethostname()} ({secrets.token_hex(8)})"
        self._is_claimed = False

    def require(self) -> None:
        """Take the store at the first call; later TakenOver if it is another process's."""
        if not self._is_claimed:
            self._claim()
            return
        try:
            found = self._store.get(NAME).decode(errors="replace")
        except DamagedCheckpoint:  # somebody has cleared the place
            self._claim()
            return
        if found != self._own:
            raise TakenOver(
                f"{found} saves to {self._store.location()}, too, and began later: this process "
                "saves nothing there any more"
            )

    def _claim(self) -> None:
        self._store.put(NAME, self._own.encode())
        self._is_claimed = True
