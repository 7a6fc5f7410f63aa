"""Listening sockets at the address of an option, and descriptors for many connections."""

import contextlib
import resource
import socket
from collections.abc import Iterator

from relaax.address import Address
from relaax.errors import ConfigurationError
from relaax.net.access import current_access, refuse_unguarded, require_guarded

BACKLOG = 1024


def allow_many_files() -> None:
    """Allow as many open files as the system lets this process have: each connection takes one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def require_allowed(**places: Address | None) -> None:
    """Raise ConfigurationError for an address that this process may not listen at.

    ``places``: by the option that gives it, with an underscore for a dash. Called before all work:
    nothing is opened.
    """
    for option, address in places.items():
        if address is not None:
            with _naming(f"--{option.replace('_', '-')}"):
                refuse_unguarded(address, current_access())


def listen_as_told(address: Address, option: str) -> socket.socket:
    """Return a socket that listens at ``address`` and does not block.

    ConfigurationError, which names the ``option`` that gave it, if that is impossible.
    """
    with _naming(option):
        require_guarded(address, current_access())
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    place = (address.host, address.port)
    try:
        listener = socket.create_server(
            place,
            family=family,
            backlog=BACKLOG,
            # As gRPC has it: [::] stands for the addresses of IPv4, too.
            dualstack_ipv6=address.host == "::" and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        reason = str(error.strerror or error).split(" (while attempting")[0]  # the address again
        raise ConfigurationError(f"{option}: cannot listen at {address}: {reason}") from error
    listener.setblocking(False)
    return listener


@contextlib.contextmanager
def naming_bind() -> Iterator[None]:
    """Raise ConfigurationError, which names --bind, for the OSError of an address that is taken."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"--bind: {error}") from error


@contextlib.contextmanager
def _naming(option: str) -> Iterator[None]:
    """Name the option in an error of its address."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{option}: {error}") from error
