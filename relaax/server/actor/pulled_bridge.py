"""The link of an agent whose parameters are pulled for it."""

from dataclasses import replace

from relaax.algorithm_base import (
    DEFAULT,
    Metrics,
    ParameterLink,
    Phase,
    Publication,
    Update,
    Values,
    ValueSink,
    Version,
    Wanted,
)


class PulledBridge(ParameterLink):
    """Hands on all calls, but for values: these change by ``use``, and not otherwise.

    The global step that comes with them changes by ``note_global_t``, too: exploration goes by it,
    also while nothing is published.

    A ``ValueFeed``: an agent that would ask for newer values by itself is given them instead.
    """

    def __init__(self, link: ParameterLink) -> None:
        self._link = link
        self._values = link.pull()
        #: The same values as they were published; None until an agent asks for them so.
        self._published: Publication | None = None
        self._sinks: list[ValueSink] = []
        #: What the pull rule asks for newer values.
        self.remote = PulledValues(link, self._values)

    def subscribe(self, sink: ValueSink) -> None:
        """Give ``sink`` whatever replaces the values."""
        self._sinks.append(sink)

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """Return the values in use, as far as they are wanted; nothing of newer ones."""
        if self._published is None:
            self._published = self.remote.publish()
        found = self._published
        is_known = wanted is Wanted.INFO or known_hash == found.hash
        return Publication(
            vector=None if is_known else found.vector,
            info=None if wanted is Wanted.PARAMETER else found.info,
            hash=found.hash,
        )

    def use(self) -> None:
        """Let what was fetched last be the values from now on."""
        self._values, self._published = self.remote.values, self.remote.published
        for sink in self._sinks:
            sink.publish(self._values)

    def note_global_t(self) -> None:
        """Let the global step be that of the last fetch, whether or not it brought values."""
        self._values = replace(self._values, global_t=self.remote.global_t)
        for sink in self._sinks:
            sink.publish(replace(self._values, vector=None))

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the values in use; those of other policies as they are pulled."""
        return self._values if policy == DEFAULT else self._link.pull(known, policy)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """See ParameterLink."""
        return self._link.push(update, policy)

    def add(self, steps: int) -> int:
        """See ParameterLink."""
        return self._link.add(steps)

    def metrics(self) -> Metrics:
        """See ParameterLink."""
        return self._link.metrics()

    def phase(self) -> Phase:
        """See ParameterLink."""
        return self._link.phase()


class PulledValues:
    """Pulls the newest values, and keeps the last ones, and the global step at each call."""

    def __init__(self, link: ParameterLink, values: Values) -> None:
        self._link = link
        #: What was pulled last.
        self.values = values
        #: The same as it was published; None where no agent has asked for it so.
        self.published: Publication | None = None
        #: The global step when the parameter server answered last.
        self.global_t = values.global_t

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """Return the vector of the newest values, unless it was returned last."""
        values = self._link.pull(self.values.version)
        self.global_t = values.global_t
        if values.vector is not None:
            if self.published is not None:
                self.publish()
            self.values = values
        return Publication(values.vector, None, "")

    def publish(self) -> Publication:
        """Return the newest values as they were published, from now on with each fetch."""
        self.published = self._link.fetch(Wanted.BOTH)
        return self.published
