"""Algorithms under Surreal's names: subclass its ``Actor``, a ``Buffer`` and its ``Learner``.

``docs/surreal.md`` shows a whole one.

``buffers``    what holds experience, and hands it out
``config``     the typed configuration
``algorithm``  makes an algorithm's package of the three classes
"""

from relaax.acting import Acted, Actor
from relaax.compat.surreal.algorithm import Learner, SurrealAlgorithm
from relaax.compat.surreal.buffers import Buffer, FIFOBuffer, PrioritizedBuffer, UniformBuffer
from relaax.compat.surreal.config import Config, Settings

__all__ = [
    "Acted", "Actor", "Buffer", "Config", "FIFOBuffer", "Learner", "PrioritizedBuffer", "Settings",
    "SurrealAlgorithm", "UniformBuffer"
]  # fmt: skip
