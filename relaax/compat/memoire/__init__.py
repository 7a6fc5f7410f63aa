"""Memoire's replay memory (seed 001) under its names, over ``relaax.replay``.

``server``    ``ReplayMemoryServer``: a memory that clients reach
``client``    ``ReplayMemoryClient``: an actor's end
``proxy``     ``Proxy``: passes calls on; endpoints
``memory``    ``ReplayMemory``: entries of many clients, and which of them has which slot
``table``     how entries are weighed, drawn and read
``returns``   returns of steps, and how far the news of later ones reach back
``settings``  the properties of a memory that may be set
``entry``     the fields of an entry
``service``   Memoire's gRPC service beside the one of ``relaax.replay``, both ends
"""

from relaax.compat.memoire.client import ReplayMemoryClient
from relaax.compat.memoire.entry import MemoryClosed
from relaax.compat.memoire.memory import ReplayMemory
from relaax.compat.memoire.proxy import Bind, Conn, Mode, Proxy
from relaax.compat.memoire.server import ReplayMemoryServer
from relaax.replay.client.stub import ReplayAway
from relaax.replay.replay import NotReady

__all__ = [
    "Bind", "Conn", "MemoryClosed", "Mode", "NotReady", "Proxy", "ReplayAway", "ReplayMemory",
    "ReplayMemoryClient", "ReplayMemoryServer"
]  # fmt: skip
