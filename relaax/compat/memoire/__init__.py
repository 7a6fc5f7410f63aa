"""Memoire's replay memory (seed 001) under its names.

``server``         ``ReplayMemoryServer``: a memory that clients reach
``client``         ``ReplayMemoryClient``: an actor's end
``proxy``          ``Proxy``: passes calls on, and messages
``memory``         ``ReplayMemory``: entries of many clients, drawn by their errors, in rollouts
``settings``       the properties of a memory that may be set
``entry``          what an entry is
``entries``        the entries of all slots as columns, and what is read of them
``returns``        returns of steps, and how far the news of later ones reach back
``ring``           the entries of a slot, and the episodes in it
``rollouts``       which entries a draw reads
``served_memory``  a memory as the gRPC service of experience calls it
``service``        the server's end of Memoire's gRPC service
``stub``           calls that service
``subscriber``     receives what a server publishes
``ports``          the gRPC ports of a server or proxy
``topics``         the newest message of each topic
"""

from relaax.compat.memoire.client import ReplayMemoryClient
from relaax.compat.memoire.entry import MemoryClosed
from relaax.compat.memoire.memory import ReplayMemory
from relaax.compat.memoire.ports import Bind, Conn, Mode
from relaax.compat.memoire.proxy import Proxy
from relaax.compat.memoire.server import ReplayMemoryServer
from relaax.replay.client.stub import ReplayAway
from relaax.replay.replay import NotReady

__all__ = [
    "Bind", "Conn", "MemoryClosed", "Mode", "NotReady", "Proxy", "ReplayAway", "ReplayMemory",
    "ReplayMemoryClient", "ReplayMemoryServer"
]  # fmt: skip
