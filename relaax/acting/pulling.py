"""Replaces the parameters that actions are chosen with by what is published."""

import logging
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from relaax.algorithm_base import ExperienceSink, ValueFeed, Values, ValueSink, ValueSource, Version
from relaax.errors import BridgeError
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: How long ``close`` waits for the thread, which may itself wait for the parameter server.
_CLOSE_S = 0.5

BatchT_contra = TypeVar("BatchT_contra", contravariant=True)


class PolicyPuller:
    """Asks ``source`` every ``interval_s`` seconds, on a thread of its own; hands on what is new.

    While the source is away, or has values that do not fit, actors go on with what they have. A
    ValueError of the source, about a request that no later one would mend, ends the thread; it is
    logged, and raised by ``check``. A source that is a ``ValueFeed`` is not asked: it hands on what
    is new by itself.
    """

    def __init__(
        self,
        source: ValueSource | None = None,
        sink: ValueSink | None = None,
        interval_s: float = 0.1,
    ) -> None:
        self._interval_s = interval_s
        self._closes = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: ValueError | None = None
        #: By sink: its source, and the version that it has. Replaced as a whole.
        self._asked: dict[ValueSink, ValueSource] = {}
        if source is not None and sink is not None:
            self.add(source, sink)

    def add(self, source: ValueSource, sink: ValueSink) -> None:
        """Ask ``source`` for ``sink``, too, from now on."""
        if isinstance(source, ValueFeed):
            source.subscribe(sink)
            return
        self._asked = {**self._asked, sink: source}
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="policy puller", daemon=True)
            self._thread.start()

    def check(self) -> None:
        """Raise the ValueError that ended the thread, if any."""
        if self._error is not None:
            raise self._error

    def remove(self, sink: ValueSink) -> None:
        """Ask no longer for ``sink``."""
        self._asked = {each: source for each, source in self._asked.items() if each is not sink}

    def close(self) -> None:
        """End the thread."""
        self._closes.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        try:
            self._ask_on()
        except ValueError as error:
            if not self._closes.is_set():
                self._error = error
                _log.error("parameters are asked for no longer: %s", error)

    def _ask_on(self) -> None:
        known: dict[ValueSink, Version] = {}
        complaint = RepeatedWarning(_log)
        while not self._closes.wait(self._interval_s):
            asked = self._asked
            known = {sink: version for sink, version in known.items() if sink in asked}
            why_not = ""
            for sink, source in asked.items():
                try:
                    values = source.pull(known.get(sink))
                except BridgeError as error:
                    why_not = str(error)
                    break
                known[sink] = values.version
                try:
                    sink.publish(values)
                except ValueError as error:
                    why_not = str(error)
            if why_not:
                complaint.say(f"acting with the parameters before: {why_not}")
            else:
                complaint.forget()


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
        source: ValueSource,
        policy: ValueSink,
        interval_s: float = 0.1,
        use: UseCounter[BatchT_contra] | None = None,
    ) -> None:
        self._sink = sink
        self._use = use
        if use is not None:
            policy = _CountedUpdates(policy, use.updated)
        self._puller = PolicyPuller(source, policy, interval_s)

    def warm_up(self) -> None:
        """Let the sink prepare."""
        self._sink.warm_up()

    def put(self, rollouts: BatchT_contra) -> None:
        """Hand on; raise what ended pulling, if anything has."""
        self._puller.check()
        if self._use is not None:
            self._use.acted(rollouts)
        self._sink.put(rollouts)

    def close(self) -> None:
        """End pulling, and close the sink."""
        self._puller.close()
        self._sink.close()


class _CountedUpdates:
    """A ``ValueSink`` that hands on to another one, and says how old new values are."""

    def __init__(self, sink: ValueSink, on_update: Callable[[float | None], object]) -> None:
        self._sink = sink
        self._on_update = on_update
        self._known: Version | None = None

    def publish(self, values: Values) -> None:
        """Hand on; the first values are those that there were before, and no update."""
        self._sink.publish(values)
        if self._known not in (None, values.version):
            self._on_update(values.age_s)
        self._known = values.version
