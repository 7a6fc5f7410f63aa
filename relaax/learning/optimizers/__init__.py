"""Updates of a flat vector, in place.

``optimizer``  the interface of each, and clipping, which any of them may have
``adam``       Adam with decoupled weight decay
``rmsprop``    RMSProp with shared statistics
``sgd``        stochastic gradient descent with momentum
``sections``   which of them a YAML file asks for
"""

from relaax.learning.optimizers.adam import Adam, AdamSettings
from relaax.learning.optimizers.optimizer import Optimizer, clip_by_global_norm
from relaax.learning.optimizers.rmsprop import RMSProp, RMSPropSettings
from relaax.learning.optimizers.sections import OptimizerSections
from relaax.learning.optimizers.sgd import SGD

__all__ = [
    "SGD", "Adam", "AdamSettings", "Optimizer", "OptimizerSections", "RMSProp", "RMSPropSettings",
    "clip_by_global_norm"
]  # fmt: skip
