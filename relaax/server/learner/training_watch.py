"""Whether a training is over, as its parameter server says."""

import logging
import threading

from relaax.algorithm_base import BridgeBase, Phase
from relaax.errors import BridgeError

_log = logging.getLogger(__name__)

#: How often the parameter server is asked.
INTERVAL_S = 0.5

#: How long ``close`` waits for the thread, which may itself wait for the parameter server.
_CLOSE_S = 0.5


class TrainingWatch:
    """Asks a parameter server for its phase, on a thread of its own that it owns until closed."""

    def __init__(self, bridge: BridgeBase) -> None:
        self._bridge = bridge
        self._phase = Phase.TRAINING
        self._closes = threading.Event()
        self._thread = threading.Thread(target=self._run, name="training watch", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be learnt: the training is over."""
        return self._phase is not Phase.TRAINING

    def close(self) -> None:
        """End the thread."""
        self._closes.set()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._closes.wait(INTERVAL_S):
            try:
                self._phase = self._bridge.phase()
            except BridgeError as error:  # it is asked again
                _log.warning("%s", error)
