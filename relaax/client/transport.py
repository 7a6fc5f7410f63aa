"""How a client reaches its server: over TCP, unless it is handed another transport."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from relaax.address import Address
from relaax.client.access import TLS_CA, TLS_CERT, TLS_KEY, ClientAccess
from relaax.errors import AccessDenied
from relaax.protocol import FrameConnection, MessageConnection
from relaax.protocol.tls_socket import NoTls, TlsSocket
from relaax.protocol.token_message import encode_token

#: The remedy if only one end of a connection speaks TLS.
_USE_IT_OR_NOT = (
    f"start the server with --tls-cert and --tls-key, or unset {TLS_CA}, {TLS_CERT} and {TLS_KEY}"
)


class Transport(Protocol):
    """Opens connections; hand your own to a client for a WebSocket or a test."""

    def connect(self, address: Address, timeout_s: float) -> MessageConnection:
        """Return a new connection to the server at ``address``; the client closes it.

        OSError when there is none within ``timeout_s`` seconds.
        """


class TcpTransport:
    """A TCP connection with a frame for each message; with TLS and a token if ``access`` has them.

    If ``access`` is omitted, variables of the environment are used: RELAAX_TOKEN and others.
    """

    def __init__(self, access: ClientAccess | None = None) -> None:
        self._access = access

    def connect(self, address: Address, timeout_s: float) -> MessageConnection:
        """Return a new connection; see ``Transport``.

        AccessDenied for a server without a valid certificate, or without TLS; ConfigurationError
        for an unusable token or certificate.
        """
        access = self._access_now()
        token, context = access.token_for(address), access.context()
        sock: socket.socket | TlsSocket
        sock = socket.create_connection((address.host, address.port), timeout_s)
        try:
            if context is not None:
                sock = TlsSocket(sock, context, server_name=address.host)
                _shake_hands(sock, timeout_s)
            connection = FrameConnection(sock)
            if token is not None:
                _show(token, connection, timeout_s)
        except BaseException:
            sock.close()
            raise
        return connection

    def speaks_tls(self) -> bool:
        """Return whether connections are made with TLS; ConfigurationError as ``connect``."""
        return self._access_now().tls is not None

    def _access_now(self) -> ClientAccess:
        return ClientAccess.of_environment() if self._access is None else self._access


def _shake_hands(sock: TlsSocket, timeout_s: float) -> None:
    """Shake hands; AccessDenied if the server has answered without TLS.

    A server may also close, or stay silent, because it has no room or stops: that stays an OSError,
    whose message mentions TLS as a possible reason.
    """
    try:
        sock.shake_hands(timeout_s)
    except NoTls as error:
        raise AccessDenied(f"the server does not speak TLS: {_USE_IT_OR_NOT}") from error
    except (ConnectionError, TimeoutError) as error:
        raise type(error)(
            f"{error} in the handshake of TLS; if the server speaks no TLS: {_USE_IT_OR_NOT}"
        ) from error


def _show(token: str, connection: FrameConnection, timeout_s: float) -> None:
    """Send the token; AccessDenied if the server has closed already with a reason.

    It does so when it refuses the client's certificate, after the client's end of the handshake.
    """
    try:
        connection.send(encode_token(token))
    except OSError:
        with suppress(OSError):
            connection.receive(timeout_s)
        raise


class _Default:
    """The transport of all clients and threads of this process; threads inherit no context."""

    transport: Transport | None = None


def default_transport() -> Transport:
    """Return the transport of a client that was given none."""
    return _Default.transport or TcpTransport()


def is_in_one_process() -> bool:
    """Return whether clients reach a server in this process, and by no other."""
    return _Default.transport is not None


@contextmanager
def connecting_by(transport: Transport) -> Iterator[None]:
    """Let clients that are made meanwhile, and are handed no transport, connect by this one.

    That is so in all threads of the process.
    """
    before, _Default.transport = _Default.transport, transport
    try:
        yield
    finally:
        _Default.transport = before
