"""Replaces the parameters that actions are chosen with by what is published."""

import logging
import threading
from typing import Generic, TypeVar

from relaax.algorithm_base import ExperienceSink, VariableFeed, VariableSink, VariableSource
from relaax.errors import BridgeError

_log = logging.getLogger(__name__)

#: How long ``close`` waits for the thread, which may itself wait for the parameter server.
_CLOSE_S = 0.5

BatchT_contra = TypeVar("BatchT_contra", contravariant=True)


class PolicyPuller:
    """Asks ``source`` every ``interval_s`` seconds, on a thread of its own; hands on what is new.

    While the source is away, actors go on with what they have. A source that is a ``VariableFeed``
    is not asked: it hands on what is new by itself.
    """

    def __init__(self, source: VariableSource, sink: VariableSink, interval_s: float = 0.1) -> None:
        self._source = source
        self._sink = sink
        self._interval_s = interval_s
        self._closes = threading.Event()
        self._thread: threading.Thread | None = None
        if isinstance(source, VariableFeed):
            source.subscribe(sink)
        else:
            self._thread = threading.Thread(target=self._run, name="policy puller", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closes.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        known = None
        while not self._closes.wait(self._interval_s):
            try:
                values = self._source.get(known)
            except BridgeError as error:
                _log.warning("acting with the parameters before: %s", error)
                continue
            known = values.version
            self._sink.publish(values)


class PullingSink(Generic[BatchT_contra]):
    """An ``ExperienceSink`` that hands on to another one, and pulls the parameters meanwhile."""

    def __init__(
        self,
        sink: ExperienceSink[BatchT_contra],
        source: VariableSource,
        policy: VariableSink,
        interval_s: float = 0.1,
    ) -> None:
        self._sink = sink
        self._puller = PolicyPuller(source, policy, interval_s)

    def warm_up(self) -> None:
        """Let the sink prepare."""
        self._sink.warm_up()

    def put(self, rollouts: BatchT_contra) -> None:
        """Hand on."""
        self._sink.put(rollouts)

    def close(self) -> None:
        """End pulling, and close the sink."""
        self._puller.close()
        self._sink.close()
