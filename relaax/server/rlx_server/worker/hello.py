"""How a conversation begins: the first message says in which version."""

from dataclasses import dataclass

from relaax.algorithm_base import ConfigBase
from relaax.errors import InvalidState
from relaax.protocol import binary, json
from relaax.protocol.binary import Hello, Welcome
from relaax.protocol.connection import Payload
from relaax.server.rlx_server.worker.connection import Codec
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.spaces import differ, written

#: A space is shown up to here where it is refused: a client may send one as large as a frame.
_SHOWN_CHARACTERS = 500


@dataclass(frozen=True)
class Beginning:
    """What a client's first message says."""

    codec: Codec
    environments: int
    #: What answers it; None in version 1, where the first message is one like all others.
    welcome: bytes | None


def begin(settings: WorkerSettings, first: Payload) -> Beginning:
    """Return what a client's first message says.

    InvalidState for a hello that does not fit the configuration; ``binary.Error`` or ProtocolError
    for one that cannot be understood.
    """
    if not binary.is_hello(first):
        return Beginning(json.ServerCodec(settings.max_frame_bytes), 1, welcome=None)
    hello = binary.decode_hello(first)
    if hello.environments > settings.max_environments:
        raise InvalidState(
            f"a connection may carry {settings.max_environments} environments (--max-environments "
            f"of the RLX server), this one would carry {hello.environments}"
        )
    welcome = binary.encode_welcome(_welcome(settings.config, hello))
    return Beginning(binary.ServerCodec(hello.environments), hello.environments, welcome)


def _welcome(config: ConfigBase, hello: Hello) -> Welcome:
    """Return the welcome to ``hello``; InvalidState when its spaces do not fit."""
    expected = Welcome(config.observation_space(), config.action_space())
    for what, announced, wanted in (
        ("observations", hello.observation_space, expected.observation_space),
        ("actions", hello.action_space, expected.action_space),
    ):
        if differ(announced, wanted):
            name = f" of {hello.environment}" if hello.environment else ""
            shown = written(announced)[:_SHOWN_CHARACTERS]
            raise InvalidState(
                f"the {what}{name} are {shown}, the algorithm section of the server's "
                f"configuration asks for {written(wanted)}"
            )
    return expected
