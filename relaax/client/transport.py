"""How a client reaches its server: with a token and TLS, over TCP or another transport."""

import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from relaax.address import Address, is_loopback
from relaax.errors import AccessDenied, ConfigurationError
from relaax.net.access import TlsFiles
from relaax.net.access.process_access import INSECURE
from relaax.net.access.tls import UnusableFiles, client_context
from relaax.net.access.tokens import require_token
from relaax.protocol import FrameConnection, MessageConnection
from relaax.protocol.first_bytes import encode_token
from relaax.protocol.tls_socket import NoTls, TlsSocket

#: Variables of the environment for all clients of a process.
TOKEN, TOKEN_FILE = "RELAAX_TOKEN", "RELAAX_TOKEN_FILE"
TLS_CA, TLS_CERT, TLS_KEY = "RELAAX_TLS_CA", "RELAAX_TLS_CERT", "RELAAX_TLS_KEY"

_Read = TypeVar("_Read")

#: A token or certificate file may be incomplete while another process writes it: it is read again
#: for so long, with such pauses.
_WRITTEN_WITHIN_S, _PAUSE_S = 2.0, 0.1

#: In the place of a file: the certificates of the system.
SYSTEM = "system"


@dataclass(frozen=True)
class ClientAccess:
    """A client's token and certificate, and the authority that it trusts.

    A token comes from ``token``, or from a file. With ``tls``, the server must show a certificate
    that is signed by ``tls.ca``, or by an authority of the system, and names the host; the client
    shows ``tls.cert``, if there is one. All files are read at each connection, and again for two
    seconds if they cannot be used: another process may be writing them. A token is sent over a
    network only with TLS, unless it ``is_insecure``.
    """

    token: str | None = None
    token_file: Path | None = None
    tls: TlsFiles | None = None
    is_insecure: bool = False

    @classmethod
    def of_environment(cls, variables: Mapping[str, str] = os.environ) -> "ClientAccess":
        """Return the access that ``variables`` describe; ConfigurationError for nonsense."""
        ca, cert, key = (variables.get(name) for name in (TLS_CA, TLS_CERT, TLS_KEY))
        if (cert is None) != (key is None):
            raise ConfigurationError(f"set {TLS_CERT} and {TLS_KEY}, both or neither")
        tls = None
        if ca or cert:
            in_file = None if ca in (None, "", SYSTEM) else Path(str(ca))
            tls = TlsFiles(Path(cert) if cert else None, Path(key) if key else None, in_file)
        file = variables.get(TOKEN_FILE)
        return cls(
            token=variables.get(TOKEN) or None,
            token_file=Path(file) if file else None,
            tls=tls,
            is_insecure=variables.get(INSECURE, "0") not in ("", "0"),
        )

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context of new connections; None without TLS.

        ConfigurationError for unusable files.
        """
        tls = self.tls
        if tls is None:
            return None
        try:
            return _once_written(lambda: client_context(tls))
        except UnusableFiles as error:
            given = {TLS_CA: tls.ca, TLS_CERT: tls.cert, TLS_KEY: tls.key}
            names = ", ".join(name for name, path in given.items() if path in error.paths)
            raise ConfigurationError(f"{error} ({names})") from error

    def token_for(self, address: Address) -> str | None:
        """Return the token to show at ``address``, if there is one.

        ConfigurationError where others could read it on its way.
        """
        token = self._token()
        if token is None or self.tls is not None or self.is_insecure or is_loopback(address.host):
            return token
        raise ConfigurationError(
            f"the token would go to {address} in plain text, where others can read it: set "
            f"{TLS_CA}, or allow it with {INSECURE}=1"
        )

    def _token(self) -> str | None:
        if self.token is not None:
            return require_token(self.token, TOKEN)
        file = self.token_file
        return None if file is None else _once_written(lambda: _token_in(file))


def _once_written(read: Callable[[], _Read]) -> _Read:
    """Call ``read`` until it succeeds; ConfigurationError after ``_WRITTEN_WITHIN_S``."""
    deadline = time.monotonic() + _WRITTEN_WITHIN_S
    while True:
        try:
            return read()
        except ConfigurationError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE_S)


def _token_in(file: Path) -> str:
    where = f"{TOKEN_FILE}: {file}"
    try:
        return require_token(file.read_text(encoding="utf-8").strip(), where)
    except OSError as error:
        raise ConfigurationError(f"{where}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{where}: is no text in UTF-8") from None


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
        access = ClientAccess.of_environment() if self._access is None else self._access
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
