"""What a network is made of.

``manifest``  names, shapes and offsets of the tensors in a flat vector
"""

from relaax.learning.networks.manifest import Manifest, TensorSpec

__all__ = ["Manifest", "TensorSpec"]
