"""A replay server as a sampler knows it."""

import logging
import threading
from collections.abc import Callable

from relaax.errors import BridgeError, ConfigurationError
from relaax.replay.client.stub import ReplayStub
from relaax.replay.replay import NotReady, ReplayState

_log = logging.getLogger(__name__)

#: How long the server waits until as much may be drawn as is wanted.
WATCH_S = 0.5

#: How often it is asked while nothing is wanted, and how often while it does not answer.
REFRESH_S = 0.5

#: How long ``close`` waits for the thread.
CLOSE_S = 2.0


class WatchedServer:
    """Watches a table of a server on a thread of its own.

    Its state is read, and changed, under ``changed``, which is notified of all changes. ``require``
    is called at each start of the server, and raises for a server with other items.
    """

    def __init__(
        self,
        stub: ReplayStub,
        table: str,
        require: Callable[[ReplayStub], None],
        changed: threading.Condition,
    ) -> None:
        self.stub = stub
        #: The weight and the allowance of draws; 0 while the server does not answer.
        self.weight = self.allowance = 0.0
        #: Why it gives no more, as far as is known.
        self.reason = ""
        #: How many items can be drawn of it.
        self.items = 0
        #: How many steps it holds, as far as is known, and how many it has lost.
        self.steps = self.lost = 0
        #: How many actions it has stored in all its incarnations, and in those before this one.
        self.actions = self._actions_before = 0
        self.incarnation = 0
        #: Counts its incarnations.
        self.epoch = 0
        self.is_away = False
        #: Why it is useless, for example for another schema.
        self.error: ConfigurationError | None = None
        self._table = table
        self._require = require
        self._changed = changed
        self._wanted = 0.0
        self._closes = False
        self._thread = threading.Thread(target=self._run, name=f"watch {stub.url}", daemon=True)
        self._thread.start()

    def want(self, allowance: float) -> None:
        """Let it be known soon when so much may be drawn; called under ``changed``.

        Only more than before is news: several threads that want something would wake one another.
        """
        if allowance > self._wanted:
            self._wanted = allowance
            self._changed.notify_all()

    def spend(self, charge: int) -> None:
        """Take note that draws were asked for; called under ``changed``."""
        self.allowance = max(0.0, self.allowance - charge)
        self._wanted = 0.0

    def note_empty(self, why: Exception) -> None:
        """Draw nothing of it until it has been asked again; called under ``changed``."""
        self.reason = f"the replay at {self.stub.url}: {why}"
        self.weight = self.allowance = 0.0
        self._wanted = 1.0
        self._changed.notify_all()

    def note_away(self, error: Exception) -> None:
        """Draw nothing more of it until it answers; called under ``changed``."""
        if not self.is_away:
            _log.warning("%s; %d steps of it cannot be drawn", error, self.steps)
        self.is_away = True
        self.reason = str(error)
        self.items = 0
        self.weight = self.allowance = 0.0
        self._changed.notify_all()

    def close(self) -> None:
        """Close the channel, which ends the call that goes on, and with it the thread."""
        with self._changed:
            self._closes = True
            self._changed.notify_all()
        self.stub.close()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while not self._closes:
            try:
                self._ask()
            except (BridgeError, NotReady, ValueError) as error:
                if self._closes:
                    return
                if isinstance(error, ValueError):  # but not if the channel is closed
                    raise
                with self._changed:
                    self.note_away(error)
                    self._changed.wait_for(lambda: self._closes, REFRESH_S)
            except ConfigurationError as error:
                with self._changed:
                    self.error = error
                    self._changed.notify_all()
                return

    def _ask(self) -> None:
        """Wait until as much may be drawn as is wanted, and take note of how the table is."""
        if self.incarnation == 0 or self.is_away:
            self._require(self.stub)
        state, incarnation = self.stub.watch(self._table, self._wanted, WATCH_S)
        if self.incarnation not in (0, incarnation) and not self.is_away:
            self._require(self.stub)
        self._note(state, incarnation)

    def _note(self, state: ReplayState, incarnation: int) -> None:
        """Store the server's answer; wait until the next question."""
        with self._changed:
            if incarnation != self.incarnation:
                self._begin(state, incarnation)
            elif self.is_away:
                _log.warning("the replay at %s answers again", self.stub.url)
            self.is_away = False
            self.weight, self.allowance = state.table.weight, state.table.allowance
            self.reason = f"the replay at {self.stub.url}: {state.reason}" if state.reason else ""
            self.items = state.table.items if self.weight else 0
            self.steps, self.actions = state.steps, self._actions_before + state.actions
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closes or self._wanted > self.allowance, REFRESH_S)

    def _begin(self, state: ReplayState, incarnation: int) -> None:
        """Note the server's start, and count the steps that were lost by it."""
        if self.incarnation:
            lost = self._missing(state)
            self.lost += lost
            self.epoch += 1
            self._actions_before = max(0, self.actions - state.actions)
            _log.warning("the replay at %s started again: %d steps are lost", self.stub.url, lost)
        self.incarnation = incarnation

    def _missing(self, state: ReplayState) -> int:
        """Return how many steps were lost at the server's start.

        Those are the steps stored since the last save, and at most all that it held. Two
        differences are lower bounds: the steps held, which fall by less if others were evicted
        meanwhile (by none if it was full), and the actions ever stored, which leave out the steps
        in which an episode was cut off. The larger one is taken.
        """
        actions = self.actions - self._actions_before - state.actions
        return max(0, self.steps - state.steps, min(self.steps, actions))
