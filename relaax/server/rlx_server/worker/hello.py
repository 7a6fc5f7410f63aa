"""How a conversation begins: the first message says in which version."""

from dataclasses import dataclass

from relaax.algorithm_base import ConfigBase
from relaax.errors import InvalidState
from relaax.protocol import binary, json
from relaax.protocol.binary import Hello, Welcome
from relaax.protocol.connection import Payload
from relaax.server.rlx_server.worker.connection import Codec
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.spaces import Space, actions_differ, differ, misfits, written

#: A space is shown up to here where it is refused: a client may send one as large as a frame.
_SHOWN_CHARACTERS = 500


@dataclass(frozen=True)
class Beginning:
    """What a client's first message says."""

    codec: Codec
    #: What it announces; in version 1, nothing but one environment.
    hello: Hello
    #: What answers it; None in version 1, where the first message is one like all others.
    welcome: bytes | None


def begin(settings: WorkerSettings, first: Payload) -> Beginning:
    """Return what a client's first message says.

    InvalidState for a hello that does not fit the configuration; ``binary.Error`` or ProtocolError
    for one that cannot be understood.
    """
    if not binary.is_hello(first):
        nothing = Hello(run_id="", environment="")
        return Beginning(json.ServerCodec(settings.most_bytes()), nothing, welcome=None)
    hello = binary.decode_hello(first)
    if hello.environments > settings.max_environments:
        raise InvalidState(
            f"a connection may carry {settings.max_environments} environments (--max-environments "
            f"of the RLX server), this one would carry {hello.environments}"
        )
    welcome = binary.encode_welcome(_welcome(settings.config, hello))
    return Beginning(binary.ServerCodec(hello.environments), hello, welcome)


def _welcome(config: ConfigBase, hello: Hello) -> Welcome:
    """Return the welcome to ``hello``; InvalidState when its spaces do not fit."""
    expected = Welcome(config.observation_space(), config.action_space(), hello.evaluate)
    for what, announced, wanted, are_different in (
        ("observations", hello.observation_space, expected.observation_space, differ),
        ("actions", hello.action_space, expected.action_space, actions_differ),
    ):
        if are_different(announced, wanted):
            name = f" of {hello.environment}" if hello.environment else ""
            raise InvalidState(f"the {what}{name} {_misfit(announced, wanted)}")
    return expected


def _misfit(announced: Space | None, wanted: Space | None) -> str:
    """Return what is wrong with the space that a client has announced."""
    asks = f"the algorithm section of the server's configuration asks for {written(wanted)}"
    if announced is not None and wanted is not None:
        by_name = "; ".join(misfits(announced, wanted))[:_SHOWN_CHARACTERS]
        if by_name:
            return f"do not fit: {by_name}; {asks}"
    return f"are {written(announced)[:_SHOWN_CHARACTERS]}, {asks}"
