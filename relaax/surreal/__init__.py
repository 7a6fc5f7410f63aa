"""Algorithms under Surreal's names: subclass its ``Actor``, a ``Buffer`` and its ``Learner``.

``docs/surreal.md`` shows a whole one.

``learner``    what learns from batches
``buffers``    what holds experience, and hands it out
``config``     the typed configuration
``algorithm``  makes an algorithm's package of the three classes
"""

from relaax.actor import Acted, Actor
from relaax.surreal.algorithm import SurrealAlgorithm
from relaax.surreal.buffers import Buffer, FIFOBuffer, PrioritizedBuffer, UniformBuffer
from relaax.surreal.config import Config, Settings
from relaax.surreal.learner import Learner

__all__ = [
    "Acted",
    "Actor",
    "Buffer",
    "Config",
    "FIFOBuffer",
    "Learner",
    "PrioritizedBuffer",
    "Settings",
    "SurrealAlgorithm",
    "UniformBuffer",
]
