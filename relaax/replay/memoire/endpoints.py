"""Endpoints as Memoire's users write them, and what they are to gRPC."""

from enum import Enum

from relaax.address import Address
from relaax.errors import ConfigurationError


class Mode(Enum):
    """Whether an end listens (``Bind``) or calls (``Conn``)."""

    Bind = "Bind"
    Conn = "Conn"


Bind, Conn = Mode.Bind, Mode.Conn

_TCP, _IPC, _INPROC = "tcp://", "ipc://", "inproc://"


def is_endpoint(text: str) -> bool:
    """Return whether a text can be meant as an endpoint."""
    return "://" in text or ":" in text


def is_inproc(endpoint: str) -> bool:
    """Return whether an endpoint is one inside of a process."""
    return endpoint.startswith(_INPROC)


def target_of(endpoint: str) -> str:
    """Return what gRPC calls ``tcp://HOST:PORT``, ``ipc://PATH``, or HOST:PORT.

    ``*`` as the host is every address of this machine. ConfigurationError for others.
    """
    if endpoint.startswith(_IPC) and len(endpoint) > len(_IPC):
        return f"unix:{endpoint.removeprefix(_IPC)}"
    if is_inproc(endpoint) or endpoint.startswith(_IPC):
        raise ConfigurationError(f"{endpoint!r} cannot be reached from another process")
    host_and_port = endpoint.removeprefix(_TCP)
    if host_and_port.startswith("*:"):
        host_and_port = "0.0.0.0" + host_and_port[1:]  # noqa: S104 - the user's own "*"
    try:
        return str(Address.parse(host_and_port))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"an endpoint is tcp://HOST:PORT, tcp://*:PORT to listen everywhere, or ipc://PATH; "
            f"this is {endpoint!r}"
        ) from error
