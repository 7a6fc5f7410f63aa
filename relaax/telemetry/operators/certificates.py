"""Warns in time that certificates expire."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from relaax.errors import ConfigurationError
from relaax.net.access import TlsFiles
from relaax.net.access.expiry import CA, expiry_by_use
from relaax.net.access.file_stamp import FromFiles
from relaax.telemetry.operators.families import Metric, gauges

_log = logging.getLogger(__name__)

DAY_S = 24 * 3600.0

#: With less left, it is said once a day.
WARN_S = 14 * DAY_S

#: How often it is looked.
LOOK_S = 60.0


class Certificates:
    """The certificates of this process, if it has any: their figures, and a warning once a day.

    A thread of its own looks at them until ``close``; ``clock`` returns seconds since 1970.
    """

    def __init__(self, files: TlsFiles | None, clock: Callable[[], float] = time.time) -> None:
        self._files = files
        self._clock = clock
        self._warned_at: dict[str, float] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        if files is None:
            return
        try:
            self._expiry = FromFiles(files.paths, lambda: expiry_by_use(files), _complain)
        except ConfigurationError as error:
            _complain(error)
            return
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)
        self._thread.start()

    def figures(self) -> Iterable[Metric]:
        """Return figures for Prometheus; none without certificates."""
        if self._thread is None:
            return []
        means = "When a certificate expires, in seconds since 1970"
        return [
            gauges("certificate_expires_timestamp_seconds", means, "use", self._expiry.content())
        ]

    def warn_if_due(self) -> None:
        """Log certificates that expire soon, unless that was logged within a day."""
        now = self._clock()
        for path, ends_at in self._ends_by_path().items():
            is_due = now - self._warned_at.get(path, float("-inf")) >= DAY_S
            if ends_at - now >= WARN_S:
                self._warned_at.pop(path, None)
            elif is_due:
                self._warned_at[path] = now
                _warn(path, ends_at, now)

    def close(self) -> None:
        """Look at nothing any more."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _ends_by_path(self) -> dict[str, float]:
        """Return when each file expires: one of two uses is warned of once."""
        if self._files is None:
            return {}
        return {
            str(self._files.ca if use == CA else self._files.cert): ends_at
            for use, ends_at in self._expiry.content().items()
        }

    def _run(self) -> None:
        while True:
            self.warn_if_due()
            if self._closed.wait(LOOK_S):
                return


def _warn(path: str, ends_at: float, now: float) -> None:
    day = datetime.fromtimestamp(ends_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if ends_at <= now:
        _log.error("%s: this certificate has expired, %s: renew it", path, day)
    else:
        days = int((ends_at - now) / DAY_S)
        _log.warning("%s: this certificate expires in %d days, %s: renew it", path, days, day)


def _complain(error: Exception) -> None:
    _log.error("it is not known when certificates expire: %s", error)
