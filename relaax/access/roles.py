"""What the processes of a training, and those who look at it, may do."""

from enum import Enum, StrEnum


class Role(StrEnum):
    """What a token makes of its bearer; the first word of its line in the token file."""

    #: A server, learner or actor: it may do everything.
    SERVER = "server"
    #: A program that plays an environment.
    ENVIRONMENT = "environment"
    #: Prometheus, or a person who looks at figures.
    MONITOR = "monitor"


class Right(Enum):
    """What a caller asks for, in words of what its role may do."""

    #: To get actions for an environment, over RLX.
    PLAY = "play environments"
    #: To read and change parameters, steps and experience, over gRPC.
    SYNCHRONIZE = "call servers"
    #: To read how a server is, and its figures, over HTTP.
    OBSERVE = "read figures"


RIGHTS = {
    Role.SERVER: frozenset(Right),
    Role.ENVIRONMENT: frozenset({Right.PLAY}),
    Role.MONITOR: frozenset({Right.OBSERVE}),
}
