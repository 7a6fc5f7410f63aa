"""Replaces the parameters that actions are chosen with by what is published."""

import logging
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from relaax.algorithm_base import ExperienceSink, VariableSink, VariableSource
from relaax.errors import BridgeError

_log = logging.getLogger(__name__)

#: How long ``close`` waits for the thread, which may itself wait for the parameter server.
_CLOSE_S = 0.5

BatchT_contra = TypeVar("BatchT_contra", contravariant=True)


class PolicyPuller:
    """Asks ``source`` every ``interval_s`` seconds, on a thread of its own; hands on what is new.

    While the source is away, actors go on with what they have. ``on_update`` is called with the age
    of what is new, if that is known.
    """

    def __init__(
        self,
        source: VariableSource,
        sink: VariableSink,
        interval_s: float = 0.1,
        on_update: Callable[[float | None], object] = lambda age_s: None,
    ) -> None:
        self._source = source
        self._sink = sink
        self._interval_s = interval_s
        self._on_update = on_update
        self._closes = threading.Event()
        self._thread = threading.Thread(target=self._run, name="policy puller", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closes.set()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        known = None
        while not self._closes.wait(self._interval_s):
            try:
                values = self._source.get(known)
            except BridgeError as error:
                _log.warning("acting with the parameters before: %s", error)
                continue
            is_new = known is not None and values.version != known
            known = values.version
            self._sink.publish(values)
            if is_new:
                self._on_update(values.age_s)


class UseCounter(Protocol[BatchT_contra]):
    """Counts how parameters are used, such as ``PolicyUse``."""

    def acted(self, rollouts: BatchT_contra) -> None:
        """Take note of what was done with the parameters in use."""

    def updated(self, age_s: float | None) -> None:
        """Take note that other parameters are in use, which were published so long ago."""


class PullingSink(Generic[BatchT_contra]):
    """An ``ExperienceSink`` that hands on to another one, and pulls the parameters meanwhile.

    ``use`` counts what is done with them.
    """

    def __init__(
        self,
        sink: ExperienceSink[BatchT_contra],
        source: VariableSource,
        policy: VariableSink,
        interval_s: float = 0.1,
        use: UseCounter[BatchT_contra] | None = None,
    ) -> None:
        self._sink = sink
        self._use = use
        on_update = (lambda age_s: None) if use is None else use.updated
        self._puller = PolicyPuller(source, policy, interval_s, on_update)

    def warm_up(self) -> None:
        """Let the sink prepare."""
        self._sink.warm_up()

    def put(self, rollouts: BatchT_contra) -> None:
        """Hand on."""
        if self._use is not None:
            self._use.acted(rollouts)
        self._sink.put(rollouts)

    def close(self) -> None:
        """End pulling, and close the sink."""
        self._puller.close()
        self._sink.close()
