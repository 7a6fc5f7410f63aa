"""Updates of a flat vector, in place.

``optimizer``  what the parameter store asks of any of them
``rmsprop``    shared RMSProp
``schedule``   learning rates
``clipping``   gradients that are too long
"""

from relaax.learning.optimizers.clipping import clip_by_global_norm
from relaax.learning.optimizers.optimizer import Optimizer
from relaax.learning.optimizers.rmsprop import RMSProp, RMSPropSettings
from relaax.learning.optimizers.schedule import linear_anneal

__all__ = ["Optimizer", "RMSProp", "RMSPropSettings", "clip_by_global_norm", "linear_anneal"]
