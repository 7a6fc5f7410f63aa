"""A file that says that environments are well, for what looks after a container."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from relaax.client.run_progress import RunProgress
from relaax.errors import ConfigurationError

_log = logging.getLogger(__name__)

_INTERVAL_S = 1.0


class HealthFile:
    """Touches ``path`` while environments make steps, or wait for a server.

    A file that is a few minutes old says that environments are connected and none makes a step, or
    that the program hangs. ConfigurationError when it cannot be written at the beginning. Later a
    full disk, say, is no reason to end the environments: a warning says once that it grows old.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._steps = 0
        self._has_warned = False
        self._next = clock() + _INTERVAL_S
        try:
            path.touch()
        except OSError as error:
            raise ConfigurationError(f"--health-file {path} cannot be written: {error}") from error

    def refresh(self, progress: RunProgress) -> None:
        """Touch the file, once a second at most, if there is a reason to."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + _INTERVAL_S
        if progress.connected == 0 or progress.steps != self._steps:
            self._steps = progress.steps
            self._touch()

    def _touch(self) -> None:
        try:
            self._path.touch()
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                _log.warning("the health file %s cannot be touched any more: %s", self._path, error)
