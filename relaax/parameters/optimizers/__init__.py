"""Updates of a flat vector, in place.

``optimizer``  the interface of optimisers, and the clipping of gradients
``adam``       Adam with decoupled weight decay
``rmsprop``    RMSProp with shared statistics
``sgd``        stochastic gradient descent with momentum
``sections``   the sections of the YAML file that choose one
"""

from relaax.parameters.optimizers.adam import Adam, AdamSettings
from relaax.parameters.optimizers.optimizer import Optimizer, clip_by_global_norm
from relaax.parameters.optimizers.rmsprop import RMSProp, RMSPropSettings
from relaax.parameters.optimizers.sections import OptimizerSections
from relaax.parameters.optimizers.sgd import SGD

__all__ = [
    "SGD", "Adam", "AdamSettings", "Optimizer", "OptimizerSections", "RMSProp", "RMSPropSettings",
    "clip_by_global_norm"
]  # fmt: skip
