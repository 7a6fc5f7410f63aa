"""The sections of the YAML file that choose an optimiser; any algorithm's settings may have them.

Derive the settings of an algorithm from ``OptimizerSections``. Its builder then asks
``settings.optimizer`` for an optimiser, and for the clipping of gradients.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from pydantic import Field, PositiveFloat, model_validator

from relaax.algorithm_base import FloatVector, Section
from relaax.learning.optimizers.adam import Adam, AdamSettings
from relaax.learning.optimizers.optimizer import Optimizer, Slots


@dataclass(frozen=True)
class RMSPropSettings:
    """What RMSProp needs to know."""

    #: Weight of the past in the running mean of squared gradients.
    decay: float = 0.99
    #: Added to that mean below the root.
    epsilon: float = 0.1


class RMSProp:
    """RMSProp without momentum, its statistics shared by all workers.

    Mnih et al. 2016 (https://arxiv.org/abs/1602.01783), section 4, "Optimization", equation (1):
    ``g = decay * g + (1 - decay) * gradient**2`` and
    ``parameters -= learning_rate * gradient / sqrt(g + epsilon)``.
    """

    def __init__(self, size: int, settings: RMSPropSettings) -> None:
        self.settings = settings
        #: Running mean of squared gradients, float32 [size]; starts at zero.
        self.mean_square: FloatVector = np.zeros(size, np.float32)
        self._scratch: FloatVector = np.empty(size, np.float32)

    def slots(self) -> Slots:
        """Return the running mean of squared gradients."""
        return {"rmsprop/mean_square": self.mean_square}

    def part(self, begin: int, end: int, size: int) -> "RMSProp":
        """See Optimizer."""
        return RMSProp(end - begin, self.settings)

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step down ``gradient`` [size], changing ``parameters`` [size] in place."""
        decay, scratch = self.settings.decay, self._scratch
        np.square(gradient, out=scratch)
        scratch *= 1 - decay
        self.mean_square *= decay
        self.mean_square += scratch
        np.add(self.mean_square, self.settings.epsilon, out=scratch)
        np.sqrt(scratch, out=scratch)
        np.divide(gradient, scratch, out=scratch)
        scratch *= learning_rate
        parameters -= scratch


class SGD:
    """Stochastic gradient descent with momentum, its velocity shared by all workers.

    Polyak 1964; Sutskever et al. 2013 (https://proceedings.mlr.press/v28/sutskever13.html), section
    2, with the learning rate outside of the velocity, so that a falling rate works at once:
    ``velocity = momentum * velocity + gradient`` and ``parameters -= learning_rate * velocity``.
    With momentum 0 it is plain gradient descent.
    """

    def __init__(self, size: int, momentum: float) -> None:
        self.momentum = momentum
        #: float32 [size]; starts at zero.
        self.velocity: FloatVector = np.zeros(size, np.float32)
        self._scratch: FloatVector = np.empty(size, np.float32)

    def slots(self) -> Slots:
        """Return the velocity."""
        return {"sgd/velocity": self.velocity}

    def part(self, begin: int, end: int, size: int) -> "SGD":
        """See Optimizer."""
        return SGD(end - begin, self.momentum)

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step down ``gradient`` [size], changing ``parameters`` [size] in place."""
        self.velocity *= self.momentum
        self.velocity += gradient
        np.multiply(self.velocity, learning_rate, out=self._scratch)
        parameters -= self._scratch


class _Section(Section):
    """What all of them have."""

    #: Gradients with a larger global norm are scaled down to it; None leaves them alone.
    gradient_norm_clipping: PositiveFloat | None = 40.0


class RMSPropSection(_Section):
    """RMSProp's parameters; the names and defaults are those of seed 003."""

    decay: float = Field(default=0.99, ge=0, lt=1)
    epsilon: PositiveFloat = 0.1

    def make(self, size: int) -> Optimizer:
        """Return the optimiser of ``size`` parameters."""
        return RMSProp(size, RMSPropSettings(self.decay, self.epsilon))


class AdamSection(_Section):
    """Adam's parameters; the defaults are those of its paper."""

    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    epsilon: PositiveFloat = 1e-8
    #: Decoupled from the gradient: AdamW.
    weight_decay: float = Field(default=0.0, ge=0)

    def make(self, size: int) -> Optimizer:
        """Return the optimiser of ``size`` parameters."""
        settings = AdamSettings(self.beta1, self.beta2, self.epsilon, self.weight_decay)
        return Adam(size, settings)


class SGDSection(_Section):
    """The parameters of stochastic gradient descent."""

    momentum: float = Field(default=0.9, ge=0, lt=1)

    def make(self, size: int) -> Optimizer:
        """Return the optimiser of ``size`` parameters."""
        return SGD(size, self.momentum)


OptimizerSection: TypeAlias = RMSPropSection | AdamSection | SGDSection


class OptimizerSections(Section):
    """The sections of a configuration, of which one is there; RMSProp with its defaults if none is.

    A section without a key (``Adam:``) stands for its defaults.
    """

    RMSProp: RMSPropSection | None = None
    Adam: AdamSection | None = None
    SGD: SGDSection | None = None

    @property
    def optimizer(self) -> OptimizerSection:
        """The section that is there."""
        return self.Adam or self.SGD or self.RMSProp or RMSPropSection()

    @model_validator(mode="before")
    @classmethod
    def _one_is_there(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        given = [name for name in OptimizerSections.model_fields if name in values]
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} exclude each other: parameters have one optimiser, so "
                "keep one of these sections"
            )
        name = given[0] if given else "RMSProp"
        section = values.get(name)
        return {**values, name: {} if section is None else section}
