"""Actors that hold their environment: environment and policy in one process.

``actor``             the base class, with Surreal's hooks
``algorithm_actor``   an actor that acts with an algorithm's own agent
``parameter_client``  fetches them by their hash, and never waits long
``pulled_bridge``     the bridge of an agent whose parameters are pulled for it
``module_dict``       what is learnt, by name, and as the vector that travels
``experience``        hands steps on, each once
``session``           the parts that a process hands to its actor
"""

from relaax.acting.actor import Actor
from relaax.acting.experience import Acted
from relaax.acting.module_dict import Module, ModuleDict, ParameterArrays
from relaax.acting.session import (
    ACTOR_MODES,
    EVAL_DETERMINISTIC,
    EVAL_STOCHASTIC,
    TRAINING,
    ActorMode,
    ActorSession,
    PullRule,
)

__all__ = [
    "ACTOR_MODES", "EVAL_DETERMINISTIC", "EVAL_STOCHASTIC", "TRAINING", "Acted", "Actor",
    "ActorMode", "ActorSession", "Module", "ModuleDict", "ParameterArrays", "PullRule"
]  # fmt: skip
