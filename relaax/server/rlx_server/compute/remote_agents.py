"""The worker's end: agents whose network runs in the compute process."""

import logging
import os
import sys
import time
from typing import Any

import numpy.typing as npt

from relaax.algorithm_base import InvalidState, PreprocessorBase
from relaax.errors import ComputeError
from relaax.metrics import Metrics
from relaax.server.rlx_server.compute.exchange import Exchange, Layout
from relaax.server.rlx_server.compute.link import Link
from relaax.server.rlx_server.connection_agents import preprocess
from relaax.steps import Steps

_log = logging.getLogger(__name__)

Array = npt.NDArray[Any]


class LinkMetrics(Metrics):
    """Scalars on their way to the parameter server, by way of the compute process, in batches.

    ``most`` is what fits into one packet, however long the names are. A batch that the compute
    process has no time for is dropped.
    """

    def __init__(self, link: Link, interval_s: float = 0.5, most: int = 100) -> None:
        self._link = link
        self._interval_s = interval_s
        self._most = most
        self._waiting: list[tuple[str, float, float | None]] = []
        self._due = time.monotonic() + interval_s

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Keep a scalar until the batch is sent."""
        self._waiting.append((name, float(y), x))
        if len(self._waiting) >= self._most:
            self.flush()
        else:
            self.flush_if_due()

    def flush_if_due(self) -> None:
        """Send what waits when the interval is over."""
        if self._waiting and time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        waiting, self._waiting = self._waiting, []
        self._due = time.monotonic() + self._interval_s
        if waiting and not self._link.send_if_possible({"metrics": waiting}):
            _log.debug("%d metrics were dropped", len(waiting))


class RemoteAgents:
    """Passes observations to the compute process and waits for its actions.

    The exchange is made with the first observations: their type is known only then.
    """

    def __init__(
        self, preprocessor: PreprocessorBase, link: Link, doorbell: int, environments: int
    ) -> None:
        self._preprocessor = preprocessor
        self._link = link
        self._doorbell = doorbell
        self._environments = environments
        self._metrics = LinkMetrics(link)
        self._exchange: Exchange | None = None
        self._environments_before: Array | None = None

    def act(self, steps: Steps) -> Array:
        """Preprocess here, act there."""
        observations, finals = preprocess(self._preprocessor, steps)
        if self._exchange is None:
            self._exchange = self._register(observations)
        if steps.environments is not self._environments_before:
            self._environments_before = steps.environments
            self._slots_before = self._exchange.slots[steps.environments]
        self._exchange.write(
            Steps(
                self._slots_before,
                steps.flags,
                steps.rewards,
                observations,
                finals,
                steps.is_plain,
            )
        )
        self._ring()
        self._link.wait()
        self._metrics.flush_if_due()
        return self._exchange.read_actions(len(observations))

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics

    def close(self) -> None:
        """Send the metrics that are left."""
        self._metrics.flush()

    def _ring(self) -> None:
        try:
            os.write(self._doorbell, self._number)
        except OSError as error:
            raise ComputeError(f"the compute process is gone: {error}") from error

    def _register(self, observations: Array) -> Exchange:
        """Tell what is coming, and take the memory for it; InvalidState when it does not fit.

        ComputeError when there is no room for so many environments.
        """
        self._link.send(
            {
                "environments": self._environments,
                "dtype": observations.dtype.str,
                "shape": observations.shape[1:],
            }
        )
        reply, descriptors = self._link.receive()
        if "refused" in reply:
            raise InvalidState(reply["refused"])
        if "no room" in reply:
            raise ComputeError(reply["no room"])
        self._number = int(reply["number"]).to_bytes(4, sys.byteorder)
        (descriptor,) = descriptors
        try:
            return Exchange(Layout.from_json(reply["layout"]), descriptor)
        finally:
            os.close(descriptor)
