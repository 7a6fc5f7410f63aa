"""Parameters as one flat float32 vector: its manifest, its optimiser, its shared store."""

from relaax.common.parameters.manifest import Manifest, TensorSpec
from relaax.common.parameters.rmsprop import RMSProp
from relaax.common.parameters.schedule import linear_anneal
from relaax.common.parameters.store import ParameterStore

__all__ = ["Manifest", "ParameterStore", "RMSProp", "TensorSpec", "linear_anneal"]
