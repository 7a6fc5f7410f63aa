"""The bridge of an agent whose parameters are pulled for it."""

import time
from dataclasses import replace

from relaax.algorithm_base import (
    BridgeBase,
    FloatVector,
    Metrics,
    Phase,
    Publication,
    PublishedInfo,
    Values,
    VariableSink,
    Version,
    Wanted,
)


class PulledBridge(BridgeBase):
    """Hands on all calls, but for values: these change by ``use``, and not otherwise.

    A ``VariableFeed``: an agent that would ask for newer values by itself is given them instead.
    """

    def __init__(self, bridge: BridgeBase) -> None:
        self._bridge = bridge
        self._values = bridge.get_values()
        #: What is known of the values, as they were published; None before.
        self._info: PublishedInfo | None = None
        self._sinks: list[VariableSink] = []
        #: What the pull rule asks for newer values.
        self.remote = PulledValues(bridge, self._values)

    def subscribe(self, sink: VariableSink) -> None:
        """Give ``sink`` whatever replaces the values."""
        self._sinks.append(sink)

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """Return the values in use, as far as they are wanted; nothing of newer ones."""
        info = self._info
        if info is None:
            return Publication(None, None, "")
        is_known = wanted is Wanted.INFO or known_hash == info.hash
        return Publication(
            vector=None if is_known else self._values.vector,
            info=None if wanted is Wanted.PARAMETER else info,
            hash=info.hash,
        )

    def use(self, vector: FloatVector) -> None:
        """Let ``vector`` [size], made of what was fetched last, be the values from now on."""
        self._values, self._info = replace(self.remote.values, vector=vector), self.remote.info
        for sink in self._sinks:
            sink.publish(self._values)

    def get_values(self, known: Version | None = None) -> Values:
        """Return the values in use."""
        return self._values

    def increment_global_t(self, steps: int = 1) -> int:
        """See BridgeBase."""
        return self._bridge.increment_global_t(steps)

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """See BridgeBase."""
        self._bridge.apply_gradients(gradients, computed_with)

    def metrics(self) -> Metrics:
        """See BridgeBase."""
        return self._bridge.metrics()

    def phase(self) -> Phase:
        """See BridgeBase."""
        return self._bridge.phase()


class PulledValues:
    """Fetches what was published last, and keeps its version and global step."""

    def __init__(self, bridge: BridgeBase, values: Values) -> None:
        self._bridge = bridge
        #: What was fetched last.
        self.values = values
        #: What is known of it.
        self.info: PublishedInfo | None = None

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """Return what was published last, as far as it is wanted and not known.

        Where gradients move the values, and nothing is published, the newest ones are returned.
        """
        info = self._bridge.fetch(Wanted.INFO).info
        if wanted is Wanted.INFO or (info is not None and info.hash == known_hash):
            return Publication(None, info, "" if info is None else info.hash)
        values = self._bridge.get_values(self.values.version)
        if values.vector is None:
            return Publication(None, info, "" if info is None else info.hash)
        info = info or _info_of(values.version)
        self.values, self.info = values, info
        return Publication(values.vector, info, info.hash)


def _info_of(version: Version) -> PublishedInfo:
    """Return what is known of values that gradients have moved."""
    return PublishedInfo(time.time(), version.number, "", f"{version.incarnation}/{version.number}")
