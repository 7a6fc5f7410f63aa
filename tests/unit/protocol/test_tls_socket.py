"""What a TLS connection says when one end does not accept the other."""

import datetime
import gc
import select
import socket
import ssl
import struct
import threading

import pytest

from relaax.errors import AccessDenied
from relaax.net.access import TlsFiles
from relaax.net.access.tls import client_context, server_context
from relaax.protocol.tls_socket import TlsSocket
from relaax.server.certificates import authority
from relaax.server.certificates.secrets_folder import SecretsFolder


@pytest.fixture(name="folder")
def _folder(tmp_path):
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign([], 365, 3650)
    return folder.path


def files(folder, name, authority_of=None):
    certificate, key = (folder / f"{name}.{kind}" for kind in ("crt", "key"))
    return TlsFiles(certificate, key, (authority_of or folder) / "ca.crt")


def expire(folder, monkeypatch):
    """Sign a certificate of environments anew that has expired yesterday."""
    monkeypatch.setattr(authority, "BEFORE", datetime.timedelta(days=3))
    ca = (folder / f"ca.{kind}" for kind in ("crt", "key"))
    signing = authority.Authority.read(authority.Signed(*(path.read_bytes() for path in ca)))
    signed = signing.sign("relaax environment", [], -1)
    (folder / "environment.crt").write_bytes(signed.certificate)
    (folder / "environment.key").write_bytes(signed.key)


def connect(client):
    """Shake hands, and wait for what the server says: of a certificate, it says so after that."""
    client.shake_hands(20)
    client.settimeout(20)
    client.recv(1)


def told_to_client(server_files, client_files):
    """Return what a client is told, and a server, after they have shown their certificates."""
    ends = socket.socketpair()
    server = TlsSocket(ends[0], server_context(server_files, True))
    client = TlsSocket(ends[1], client_context(client_files), server_name="localhost")
    told = []

    def serve():
        with pytest.raises(AccessDenied) as refused:
            server.shake_hands(20)
        told.append(str(refused.value))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with pytest.raises(AccessDenied) as refused:
            connect(client)
    finally:
        thread.join(20)
        client.close()
        server.close()
    return str(refused.value), *told


def test_a_client_whose_certificate_has_expired_is_told_so(folder, monkeypatch):
    expire(folder, monkeypatch)
    told, seen = told_to_client(files(folder, "server"), files(folder, "environment"))
    assert told == "the peer says that the certificate of this end has expired"
    assert seen == "the peer's certificate is not accepted: certificate has expired"


def test_a_client_of_another_authority_is_told_so(folder, tmp_path):
    other = SecretsFolder(tmp_path / "other")
    other.sign([], 365, 3650)
    told, _ = told_to_client(
        files(folder, "server"), files(other.path, "environment", authority_of=folder)
    )
    assert told == "the peer does not accept the certificate of this end"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("SSLV3_ALERT_BAD_CERTIFICATE", "does not accept the certificate"),
        ("SSLV3_ALERT_CERTIFICATE_UNKNOWN", "does not accept the certificate"),
        ("SSLV3_ALERT_CERTIFICATE_REVOKED", "was revoked"),
        ("SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", "for another purpose"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "no version or cipher of TLS"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "no version or cipher of TLS"),
        ("TLSV1_ALERT_DECRYPT_ERROR", "the key of another one"),
    ],
)
def test_a_refusal_is_no_accident_that_is_tried_again(folder, reason, words, monkeypatch):
    ends = socket.socketpair()
    end = TlsSocket(ends[0], client_context(files(folder, "environment")), server_name="localhost")
    error = ssl.SSLError()
    error.reason = reason

    def fail(sock):
        raise error

    monkeypatch.setattr(ssl.SSLSocket, "do_handshake", fail)
    with pytest.raises(AccessDenied, match=words):
        end.shake_hands(20)
    end.close()
    ends[1].close()


def test_a_peer_that_resets_before_the_handshake_leaves_no_socket_open(folder):
    """A warning of one that is left open fails the test: see filterwarnings in pyproject.toml."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.close()
    select.select([client], [], [], 20)
    with pytest.raises(ConnectionResetError):
        TlsSocket(client, client_context(files(folder, "environment")), server_name="localhost")
    assert client.fileno() == -1
    gc.collect()
