"""Algorithms under Surreal's names: subclass its ``Actor``, a ``Buffer`` and its ``Learner``.

``docs/surreal.md`` shows a whole one.

``buffers``    tables of experience, with Surreal's hooks
``config``     the typed configuration
``algorithm``  makes an algorithm's package of the three classes

Actors hold their environment: environment and policy are in one process.

``actor``        the base class, with Surreal's hooks
``module_dict``  all that is learnt, by name, and as the vector that travels
``experience``   hands steps on, each once
``session``      the parts that a process hands to its actor
"""

from relaax.acting.parameter_client import PullRule
from relaax.compat.surreal.actor import Actor
from relaax.compat.surreal.algorithm import Learner, SurrealAlgorithm
from relaax.compat.surreal.buffers import Buffer, FIFOBuffer, PrioritizedBuffer, UniformBuffer
from relaax.compat.surreal.config import Config, Settings
from relaax.compat.surreal.experience import Acted
from relaax.compat.surreal.module_dict import Module, ModuleDict, ParameterArrays
from relaax.compat.surreal.session import (
    ACTOR_MODES,
    EVAL_DETERMINISTIC,
    EVAL_STOCHASTIC,
    TRAINING,
    ActorMode,
    ActorSession,
)

__all__ = [
    "ACTOR_MODES", "EVAL_DETERMINISTIC", "EVAL_STOCHASTIC", "TRAINING", "Acted", "Actor",
    "ActorMode", "ActorSession", "Buffer", "Config", "FIFOBuffer", "Learner", "Module",
    "ModuleDict", "ParameterArrays", "PrioritizedBuffer", "PullRule", "Settings",
    "SurrealAlgorithm", "UniformBuffer"
]  # fmt: skip
