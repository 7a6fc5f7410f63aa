"""What all workers share, and what is saved of it."""

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
    require_same_fingerprint,
)

from .config import Config


class Best(BridgeBase):
    """Score and weights of the best episode, in one vector; many threads call this at once."""

    def __init__(self, config: Config, metrics: Metrics) -> None:
        self.fingerprint = {"algorithm": "random search", "shape": list(config.weights_shape)}
        self.is_over = False
        self.global_t = 0
        self._version = 0
        self._vector: FloatVector = np.zeros(1 + np.prod(config.weights_shape), np.float32)
        self._vector[0] = -np.inf  # any score is better
        self._metrics = metrics
        self._lock = threading.Lock()

    def increment_global_t(self, steps: int = 1) -> int:
        """Count environment steps."""
        with self._lock:
            if not self.is_over:
                self.global_t += steps
            return self.global_t

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Take a result if it is the best so far."""
        if gradients.shape != self._vector.shape:
            raise ValueError(f"a result has {gradients.size} numbers, not {self._vector.size}")
        with self._lock:
            if self.is_over or gradients[0] <= self._vector[0]:
                return
            self._vector = gradients.copy()
            self._version += 1
        self._metrics.scalar("episode/best score", float(gradients[0]))

    def get_values(self, known: Version | None = None) -> Values:
        """Return the best result; without its vector, if the worker knows it already."""
        with self._lock:
            is_known = known is not None and known.number == self._version
            return Values(Version(self._version), self.global_t, None if is_known else self._vector)

    def metrics(self) -> Metrics:
        """Return where the agents' scalars go."""
        return self._metrics

    def checkpoint(self) -> Checkpoint:
        """Return everything as it is at one moment."""
        with self._lock:
            tensors = {"best": self._vector}
            return Checkpoint(tensors, self.global_t, self._version, self.fingerprint)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        self._vector = checkpoint.tensors["best"]
        self._version, self.global_t = checkpoint.version, checkpoint.global_t


class ParameterServer(ParameterServerBase):
    """Owns the best result in its process."""

    def __init__(self, config: Config, saver: Saver, metrics: Metrics) -> None:
        super().__init__(config, saver, metrics)
        self._best = Best(config, metrics)
        self._max_global_step = config.keys.max_global_step

    def restore_latest_checkpoint(self) -> None:
        """Go on where the run before ended, if there was one with the same sizes."""
        checkpoint = self.saver.restore_latest()
        if checkpoint is not None:
            location = self.saver.location()
            require_same_fingerprint(checkpoint.fingerprint, self._best.fingerprint, location)
            self._best.restore(checkpoint)

    def save_checkpoint(self) -> None:
        """Save the best result."""
        self.saver.save(self._best.checkpoint())

    def global_t(self) -> int:
        """Return the steps of all agents."""
        return self._best.global_t

    def training_is_over(self) -> bool:
        """Return whether all steps are done."""
        return self._best.global_t >= self._max_global_step

    def max_global_step(self) -> float:
        """Return the step that progress is shown against."""
        return self._max_global_step

    def stop_training(self) -> None:
        """Leave the best result as it is."""
        self._best.is_over = True

    def bridge(self) -> BridgeBase:
        """Return what answers the workers."""
        return self._best
