"""Updates of a flat vector, in place.

``optimizer``  what the parameter store asks of any of them
``adam``       Adam with decoupled weight decay
``sections``   which of them a YAML file asks for
"""

from relaax.learning.optimizers.adam import Adam, AdamSettings
from relaax.learning.optimizers.optimizer import Optimizer, clip_by_global_norm, linear_anneal
from relaax.learning.optimizers.sections import SGD, OptimizerSections, RMSProp, RMSPropSettings

__all__ = [
    "SGD", "Adam", "AdamSettings", "Optimizer", "OptimizerSections", "RMSProp", "RMSPropSettings",
    "clip_by_global_norm", "linear_anneal"
]  # fmt: skip
