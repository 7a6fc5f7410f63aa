"""The link of an agent whose parameters are pulled for it."""

from dataclasses import replace

from relaax.algorithm_base import (
    DEFAULT,
    Metrics,
    ParameterLink,
    Phase,
    Update,
    Values,
    ValueSink,
    Version,
)


class PulledBridge(ParameterLink):
    """Hands on all calls, but for values: these change by ``use``, and not otherwise.

    A ``ValueFeed``: an agent that would ask for newer values by itself is given them instead.
    """

    def __init__(self, link: ParameterLink) -> None:
        self._link = link
        self._values = link.pull()
        self._sinks: list[ValueSink] = []

    def subscribe(self, sink: ValueSink) -> None:
        """Give ``sink`` all values that replace those before."""
        self._sinks.append(sink)

    def use(self, values: Values) -> None:
        """Let these be the values from now on; without a vector, those before, but for the rest.

        The global step may be another one all the same: exploration goes by it, also while nothing
        is published.
        """
        vector = self._values.vector if values.vector is None else values.vector
        self._values = replace(values, vector=vector)
        for sink in self._sinks:
            sink.publish(values)

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the values in use; those of other policies as they are pulled."""
        if policy != DEFAULT:
            return self._link.pull(known, policy)
        return replace(self._values, vector=None) if known == self._values.version else self._values

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
