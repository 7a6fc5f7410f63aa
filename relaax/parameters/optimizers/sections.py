"""The sections of the YAML file that choose an optimiser; any algorithm's settings may have them.

Derive the settings of an algorithm from ``OptimizerSections``. Its builder then asks
``settings.optimizer`` for an optimiser, and for the clipping of gradients.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import Field, PositiveFloat, model_validator

from relaax.algorithm_base import Section
from relaax.parameters.optimizers.adam import Adam, AdamSettings
from relaax.parameters.optimizers.optimizer import Optimizer
from relaax.parameters.optimizers.rmsprop import RMSProp, RMSPropSettings
from relaax.parameters.optimizers.sgd import SGD


class _Section(Section):
    """The clipping of gradients, which each optimiser has."""

    #: Gradients with a larger global norm are scaled down to it; None leaves them alone.
    gradient_norm_clipping: PositiveFloat | None = 40.0


class RMSPropSection(_Section):
    """RMSProp's parameters; names and defaults are seed 003's."""

    decay: float = Field(default=0.99, ge=0, lt=1)
    epsilon: PositiveFloat = 0.1

    def make(self, size: int) -> Optimizer:
        """Return the optimiser of ``size`` parameters."""
        return RMSProp(size, RMSPropSettings(self.decay, self.epsilon))


class AdamSection(_Section):
    """Adam's parameters; the defaults are its paper's."""

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
    """The sections of a configuration, of which one may be given; RMSProp is the default.

    A section without a key (``Adam:``) stands for its defaults.
    """

    RMSProp: RMSPropSection | None = None
    Adam: AdamSection | None = None
    SGD: SGDSection | None = None

    @property
    def optimizer(self) -> OptimizerSection:
        """The section that is given."""
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
