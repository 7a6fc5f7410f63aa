"""Where actors find what a learner has published."""

from relaax.algorithm_base import BridgeBase, Values, Version, Wanted


class PublishedSource:
    """A ``VariableSource`` whose versions are the learner's own count of its steps.

    So a learner can say how old the parameters are that an action was chosen with. Until something
    is published, there are the initial values, as version 0. The global step of values is 0.
    """

    def __init__(self, bridge: BridgeBase) -> None:
        self._bridge = bridge
        self._hash = ""

    def get(self, known: Version | None = None) -> Values:
        """Return the newest values; without their vector if they were returned last."""
        found = self._bridge.fetch(Wanted.BOTH, "" if known is None else self._hash)
        if found.info is None:
            values = self._bridge.get_values()
            return Values(Version(0), 0, values.vector)
        self._hash = found.hash
        return Values(Version(found.info.iteration), 0, found.vector, found.info.age_s)
