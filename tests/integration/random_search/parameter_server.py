"""Keeps the best weights."""

import threading

import numpy as np

from relaax.algorithm_base import (
    BridgeBase,
    Checkpoint,
    FloatVector,
    Metrics,
    ParameterServerBase,
    Saver,
    Values,
    Version,
)

from .config import Config


class Best(BridgeBase):
    """Score and weights of the best episode; many threads call it at once."""

    def __init__(self, weights: int, metrics: Metrics) -> None:
        self.best: FloatVector = np.zeros(1 + weights, np.float32)
        self.version = 0
        self.global_t = 0
        self._metrics = metrics
        self._is_over = False
        self._lock = threading.Lock()

    def increment_global_t(self, steps: int = 1) -> int:
        """Count steps."""
        with self._lock:
            if not self._is_over:
                self.global_t += steps
            return self.global_t

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Take a result if it is the best so far."""
        if gradients.shape != self.best.shape:
            raise ValueError(f"a result has {gradients.size} numbers, {self.best.size} are needed")
        with self._lock:
            if gradients[0] > self.best[0] and not self._is_over:
                self.best = gradients.copy()
                self.version += 1

    def get_values(self, known: Version | None = None) -> Values:
        """Return the best result."""
        with self._lock:
            is_current = known is not None and known.number == self.version
            return Values(Version(self.version), self.global_t, None if is_current else self.best)

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics

    def stop(self) -> None:
        """Change nothing from now on."""
        with self._lock:
            self._is_over = True

    def checkpoint(self) -> Checkpoint:
        """Return best weights, steps and version as they are at one moment."""
        with self._lock:
            return Checkpoint(
                tensors={"best": self.best},
                global_t=self.global_t,
                version=self.version,
                fingerprint={"algorithm": "random search"},
            )


class ParameterServer(ParameterServerBase):
    """Saves and restores the best weights."""

    def __init__(self, config: Config, saver: Saver, metrics: Metrics) -> None:
        super().__init__(config, saver, metrics)
        self._best = Best(config.weights, metrics)

    def restore_latest_checkpoint(self) -> None:
        """Go on from the best weights of the run before."""
        checkpoint = self.saver.restore_latest()
        if checkpoint is not None:
            self._best.best = checkpoint.tensors["best"]
            self._best.version = checkpoint.version
            self._best.global_t = checkpoint.global_t

    def save_checkpoint(self) -> None:
        """Save the best weights."""
        self.saver.save(self._best.checkpoint())

    def global_t(self) -> int:
        """Return the steps of all agents."""
        return self._best.global_t

    def stop_training(self) -> None:
        """Leave the best weights as they are."""
        self._best.stop()

    def bridge(self) -> BridgeBase:
        """Return what answers the workers."""
        return self._best
