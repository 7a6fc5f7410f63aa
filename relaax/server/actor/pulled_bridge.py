"""The bridge of an agent whose parameters are pulled for it."""

import time
from dataclasses import replace

from relaax.algorithm_base import (
    DEFAULT,
    FloatVector,
    Metrics,
    ParameterLink,
    Phase,
    Publication,
    PublishedInfo,
    Update,
    Values,
    ValueSink,
    Version,
    Wanted,
)
from relaax.parameters.published.parameters import hash_of


class PulledBridge(ParameterLink):
    """Hands on all calls, but for values: these change by ``use``, and not otherwise.

    The global step that comes with them changes by ``note_global_t``, too: exploration goes by it,
    also while nothing is published.

    A ``ValueFeed``: an agent that would ask for newer values by itself is given them instead.
    """

    def __init__(self, bridge: ParameterLink) -> None:
        self._bridge = bridge
        self._values = bridge.pull()
        #: What is known of the values, as they were published; None before.
        self._info: PublishedInfo | None = None
        self._sinks: list[ValueSink] = []
        #: What the pull rule asks for newer values.
        self.remote = PulledValues(bridge, self._values)

    def subscribe(self, sink: ValueSink) -> None:
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

    def note_global_t(self) -> None:
        """Let the global step be that of the last fetch, whether or not it brought values."""
        self._values = replace(self._values, global_t=self.remote.global_t)
        for sink in self._sinks:
            sink.publish(replace(self._values, vector=None))

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the values in use; those of other policies as they are pulled."""
        return self._values if policy == DEFAULT else self._bridge.pull(known, policy)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """See ParameterLink."""
        return self._bridge.push(update, policy)

    def add(self, steps: int) -> int:
        """See ParameterLink."""
        return self._bridge.add(steps)

    def metrics(self) -> Metrics:
        """See ParameterLink."""
        return self._bridge.metrics()

    def phase(self) -> Phase:
        """See ParameterLink."""
        return self._bridge.phase()


class PulledValues:
    """Fetches what was published last, and keeps its version, and the global step at each fetch."""

    def __init__(self, bridge: ParameterLink, values: Values) -> None:
        self._bridge = bridge
        #: What was fetched last.
        self.values = values
        #: What is known of it.
        self.info: PublishedInfo | None = None
        #: The global step when the parameter server answered last.
        self.global_t = values.global_t

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """Return what was published last, as far as it is wanted and not known.

        Where gradients move the values, and nothing is published, the newest ones are returned.
        """
        info = self._bridge.fetch(Wanted.INFO).info
        if wanted is Wanted.INFO:
            return Publication(None, info, "" if info is None else info.hash)
        if info is None:
            return self._moved()
        if info.hash == known_hash:
            self.global_t = self._bridge.add(0)
            return Publication(None, info, info.hash)
        return self._published(info)

    def _moved(self) -> Publication:
        """Return values that gradients have moved, unless they are those of the fetch before."""
        values = self._bridge.pull(self.values.version)
        self.global_t = values.global_t
        if values.vector is None:
            return Publication(None, None, "")
        return self._kept(values, values.vector, _info_of(values.version))

    def _published(self, info: PublishedInfo) -> Publication:
        """Return values that were published, and what is known of these."""
        values = self._bridge.pull()
        self.global_t, vector = values.global_t, values.vector
        if vector is None or hash_of(vector) != info.hash:
            # Others were published between the two calls: they are fetched as one with their info.
            found = self._bridge.fetch(Wanted.BOTH)
            if found.vector is None or found.info is None:  # it has started again, without them
                return Publication(None, None, "")
            vector, info = found.vector, found.info
        return self._kept(replace(values, age_s=info.age_s), vector, info)

    def _kept(self, values: Values, vector: FloatVector, info: PublishedInfo) -> Publication:
        """Return ``vector``, and keep the rest of ``values`` and ``info`` for when it is used."""
        self.values, self.info = replace(values, vector=vector), info
        return Publication(vector, info, info.hash)


def _info_of(version: Version) -> PublishedInfo:
    """Return what is known of values that gradients have moved."""
    return PublishedInfo(time.time(), version.number, "", f"{version.incarnation}/{version.number}")
