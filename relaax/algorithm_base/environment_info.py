"""What an agent may know of its environment."""

from dataclasses import dataclass

from relaax.spaces import Space


@dataclass(frozen=True)
class EnvironmentInfo:
    """What an environment's client has announced, and what the worker adds to it."""

    #: Its name for people; "" where the client says none, as in version 1 of the protocol.
    name: str
    #: As announced; None where the client says none.
    observation_space: Space | None
    action_space: Space | None
    #: Its number on its connection, from 0.
    number: int
    #: From 0 to 2**32 - 1. Each environment of a worker has another one, and in all likelihood
    #: each one that connects to any RLX server.
    seed: int
