"""Where the members of a population are, and what is new of them."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from relaax.errors import BridgeError, NoSuchVersion
from relaax.populations.membership import EvaluatedEpisode
from relaax.populations.stub import MemberStub
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MemberPlace:
    """Where a member is."""

    stub: MemberStub
    #: The folder of its learner's checkpoints; "" where nobody takes its parameters.
    checkpoints: str = ""
    #: Raises ConfigurationError for hyperparameters that the algorithm does not allow.
    require_allowed: Callable[[Mapping[str, Any]], object] = lambda hyperparameters: None


class Members:
    """The members of a population by their names, for its manager.

    ``stream`` is that of the evaluated episodes.
    """

    def __init__(self, places: Mapping[str, MemberPlace], stream: str) -> None:
        self.places = places
        self._stream = stream
        #: What each parameter server has been asked: its incarnation, and the episodes so far.
        self.seen = dict.fromkeys(places, (0, 0))
        self._complaints = {name: RepeatedWarning(_log) for name in places}

    def each(self, look: Callable[[str], object]) -> None:
        """Call ``look`` with each name; a member whose parameter server is away is left out."""
        for name in self.places:
            try:
                look(name)
                self._complaints[name].forget()
            except (BridgeError, NoSuchVersion) as error:  # it may be starting again
                self._complaints[name].say(f"nothing is known of {name} now: {error}")

    def new_episodes(self, name: str) -> list[EvaluatedEpisode]:
        """Return the episodes since the last call; BridgeError as of a stub."""
        incarnation, count = self.seen[name]
        stub = self.places[name].stub
        found = stub.episodes(self._stream, count)
        if found.incarnation != incarnation and count:
            found = stub.episodes(self._stream)
        self.seen[name] = found.incarnation, found.count
        return found.latest
