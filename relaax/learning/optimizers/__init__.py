"""Updates of a flat vector, in place.

``rmsprop``   shared RMSProp
``schedule``  learning rates
"""

from relaax.learning.optimizers.rmsprop import RMSProp, RMSPropSettings
from relaax.learning.optimizers.schedule import linear_anneal

__all__ = ["RMSProp", "RMSPropSettings", "linear_anneal"]
