"""Fetches published parameters, and never waits long for them."""

import logging
import queue
import threading
from typing import Protocol

from relaax.algorithm_base import Publication, PublishedInfo, Wanted
from relaax.errors import BridgeError

_log = logging.getLogger(__name__)

#: How long a fetch waits for its answer; Surreal's own.
TIMEOUT_S = 2.0

NOTHING = Publication(None, None, "")


class Fetches(Protocol):
    """What answers requests for published parameters, such as a bridge."""

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """See ``ParameterLink``."""


class ParameterClient:
    """Asks a parameter server for what was published last, unless that is known by its hash.

    An answer that is not there within ``timeout_s`` counts as nothing: the actor goes on with the
    parameters that it has. While such an answer is outstanding, no fetch waits again. Calls run on
    a thread of the client's own, which ends with it.
    """

    def __init__(self, bridge: Fetches, timeout_s: float = TIMEOUT_S) -> None:
        self._bridge = bridge
        #: May be changed at any time.
        self.timeout_s = timeout_s
        self._calls: queue.SimpleQueue[tuple[Wanted, str] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Publication | BridgeError] = queue.SimpleQueue()
        self._outstanding: Wanted | None = None
        #: Of the parameters that were fetched last; empty before.
        self.hash = ""
        #: Whether the parameter server has answered the last fetch.
        self.alive = True
        self._thread = threading.Thread(target=self._run, name="parameter client", daemon=True)
        self._thread.start()

    def fetch_parameter_with_info(self) -> Publication:
        """Return the parameters if they are others than before, and what is known of them.

        Nothing of both where nothing was published yet, or the parameter server is away.
        """
        publication = self._ask(Wanted.BOTH)
        self.hash = publication.hash or self.hash
        return publication

    def fetch_info(self) -> PublishedInfo | None:
        """Return what is known of the parameters that were published last, if anything."""
        return self._ask(Wanted.INFO).info

    def close(self) -> None:
        """End the thread, when its call has been answered."""
        self._calls.put(None)

    def _ask(self, wanted: Wanted) -> Publication:
        """Return an answer to ``wanted``; nothing if there is none in time.

        What answers a call before, of another kind, is dropped.
        """
        wait_s = self.timeout_s if self._outstanding is None else 0.0
        if self._outstanding is None:
            self._outstanding = wanted
            self._calls.put((wanted, self.hash))
        asked = self._outstanding
        try:
            answer = self._answers.get(timeout=wait_s)
        except queue.Empty:
            self._note(is_alive=False, reason="the parameter server does not answer")
            return NOTHING
        self._outstanding = None
        if isinstance(answer, BridgeError):
            self._note(is_alive=False, reason=str(answer))
            return NOTHING
        self._note(is_alive=True, reason="")
        return answer if asked is wanted else NOTHING

    def _note(self, *, is_alive: bool, reason: str) -> None:
        """Log only what has changed."""
        if self.alive and not is_alive:
            _log.warning("acting with the parameters before: %s", reason)
        elif is_alive and not self.alive:
            _log.warning("the parameter server answers again")
        self.alive = is_alive

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                self._answers.put(self._bridge.fetch(*call))
            except BridgeError as error:
                self._answers.put(error)
            except ValueError as error:  # the bridge has been closed
                self._answers.put(BridgeError(str(error)))
