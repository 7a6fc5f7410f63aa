"""Updates of a flat vector, in place.

``optimizer``  what the parameter store asks of any of them
``rmsprop``    shared RMSProp
``adam``       Adam with decoupled weight decay
``adam_tf``    Adam inside a graph
``sgd``        stochastic gradient descent with momentum
``parts``      several optimisers on parts of one vector
``sections``   which of them a YAML file asks for
``schedule``   learning rates
``clipping``   gradients that are too long
"""

from relaax.learning.optimizers.adam import Adam, AdamSettings
from relaax.learning.optimizers.clipping import clip_by_global_norm
from relaax.learning.optimizers.optimizer import Optimizer
from relaax.learning.optimizers.rmsprop import RMSProp, RMSPropSettings
from relaax.learning.optimizers.schedule import linear_anneal
from relaax.learning.optimizers.sections import OptimizerSections
from relaax.learning.optimizers.sgd import SGD

__all__ = [
    "SGD",
    "Adam",
    "AdamSettings",
    "Optimizer",
    "OptimizerSections",
    "RMSProp",
    "RMSPropSettings",
    "clip_by_global_norm",
    "linear_anneal",
]
