"""An update of all that an algorithm learns, as one graph."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.networks import Network
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.critics import ACTION, OBSERVATION, VALUE
from relaax.learning.off_policy.learner import TransitionBatch
from relaax.learning.tensorflow_runtime_tf import has_gpu
from relaax.learning.variables_tf import Variables, scaled_down

FloatArray = npt.NDArray[np.float32]


Terms = dict[str, tf.Tensor]


@dataclass(frozen=True)
class Losses:
    """The losses of a batch, inside a graph."""

    #: By the name of the variable that each is minimised by, which alone its gradient is of.
    by_name: dict[str, tf.Tensor]
    #: Of each transition, [B].
    errors: tf.Tensor
    #: Numbers by name, to be shown.
    terms: Terms


class GraphUpdate(ABC):
    """Computes the gradients of ``losses``, takes a step, and moves the followers.

    All gradients of an update are those at the variables before it. Followers go ``target_rate`` of
    their way at every ``target_every``-th update.

    XLA compiles it where there is a GPU: on a CPU that takes seconds, and makes it no faster.
    """

    def __init__(self, variables: Variables, target_rate: float, target_every: int = 1) -> None:
        self.variables = variables
        self._target_rate = target_rate
        self._target_every = target_every
        kinds = {"jit_compile": has_gpu(), "autograph": False}
        self._whole = tf.function(self._update, **kinds)
        self._joined = tf.function(self._joined_gradients, **kinds)
        self._following = tf.function(self._follow, **kinds)

    @abstractmethod
    def losses(
        self, batch: TransitionBatch, at: Mapping[str, tf.Tensor], names: tuple[str, ...]
    ) -> Losses:
        """Return the losses of the variables ``names``, inside a graph.

        at: all variables by name, [size]; those that are learnt are watched.
        """

    def gradients(
        self, batch: TransitionBatch, names: tuple[str, ...]
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, Terms]:
        """Return the gradients of ``names`` [size], errors [B] and terms, inside a graph."""
        with tf.GradientTape(persistent=True) as tape:
            at = self.variables.all()
            tape.watch([at[name] for name in self.variables.names])
            losses = self.losses(batch, at, names)
        gradients = {name: tape.gradient(losses.by_name[name], at[name]) for name in names}
        return gradients, losses.errors, losses.terms

    def learnt(self, number: int) -> tuple[str, ...]:
        """Return the names of the variables that the update of this number moves, from 1."""
        return self.variables.names

    @property
    def policy(self) -> FloatVector:
        """The parameters that actors act with, float32 [size]."""
        vector: FloatVector = self.variables[POLICY_VARIABLE].numpy()
        return vector

    def __call__(self, batch: TransitionBatch, number: int) -> tuple[FloatArray, dict[str, float]]:
        """Make the update of this number, from 1; return errors float32 [B] and terms."""
        errors, terms = self._whole(
            self.learnt(number), self._moves_followers(number), *vars(batch).values()
        )
        return errors.numpy(), _numbers(terms)

    def gradient(self, batch: TransitionBatch) -> tuple[FloatVector, FloatArray, dict[str, float]]:
        """Return the gradients of all that is learnt, joined [sizes], errors and terms."""
        joined, errors, terms = self._joined(*vars(batch).values())
        return joined.numpy(), errors.numpy(), _numbers(terms)

    def load(self, joined: FloatVector, before: int, number: int) -> None:
        """Take all variables from elsewhere after the updates behind ``before`` up to ``number``.

        Followers move once where one of these moves them.
        """
        self.variables.load(joined)
        if number // self._target_every > before // self._target_every:
            self._following()

    def begin(self, joined: FloatVector) -> None:
        """Take all variables from elsewhere before the first update; followers are copies."""
        self.variables.load(joined)
        self.variables.copy_to_followers()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all variables by name."""
        return self.variables.state()

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``, which may hold more."""
        self.variables.restore(state)

    def _moves_followers(self, number: int) -> bool:
        return number % self._target_every == 0

    def _update(
        self, names: tuple[str, ...], moves_followers: bool, *columns: tf.Tensor
    ) -> tuple[tf.Tensor, Terms]:
        gradients, errors, terms = self.gradients(TransitionBatch(*columns), names)
        for name in names:
            self.variables.descend(name, gradients[name])
        if moves_followers:
            self._follow()
        return errors, terms

    def _joined_gradients(self, *columns: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, Terms]:
        names = self.variables.names
        gradients, errors, terms = self.gradients(TransitionBatch(*columns), names)
        return tf.concat([gradients[name] for name in names], axis=0), errors, terms

    def _follow(self) -> None:
        self.variables.follow(self._target_rate)


class LimitedUpdate(GraphUpdate):
    """An update whose gradients, where they are longer than ``gradient_norm``, are scaled down.

    Those of all variables together; None: whatever their length. It is the term "gradient norm".
    """

    def __init__(
        self,
        variables: Variables,
        target_rate: float,
        target_every: int = 1,
        gradient_norm: float | None = None,
    ) -> None:
        super().__init__(variables, target_rate, target_every)
        self._gradient_norm = gradient_norm

    def gradients(
        self, batch: TransitionBatch, names: tuple[str, ...]
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, Terms]:
        """See GraphUpdate: gradients that are too long are scaled down together."""
        gradients, errors, terms = super().gradients(batch, names)
        joined = tf.concat([gradients[name] for name in names], axis=0)
        scaled, norm = scaled_down(joined, self._gradient_norm)
        parts = tf.split(scaled, [gradients[name].shape[0] for name in names])
        return dict(zip(names, parts, strict=True)), errors, {**terms, "gradient norm": norm}


def _numbers(terms: Mapping[str, tf.Tensor]) -> dict[str, float]:
    return {name: float(term) for name, term in terms.items()}


def values_of(
    critic: Network, vectors: tf.Tensor, count: int, observations: Any, actions: tf.Tensor
) -> tf.Tensor:
    """Return the values of ``actions`` [B, ...] by ``count`` critics, [count, B].

    vectors: the critics' parameters one behind another, [count * size].
    """
    named = observations if isinstance(observations, dict) else {OBSERVATION: observations}
    inputs = {**named, ACTION: actions}
    return tf.stack(
        [outputs_of(critic, vector, inputs)[VALUE][:, 0] for vector in tf.split(vectors, count)]
    )
