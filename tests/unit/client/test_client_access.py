"""What a client shows: of files that may be replaced while they are read."""

import contextlib
import socket
import ssl
import threading
from functools import partial

import pytest
from cryptography.hazmat.primitives import serialization
from processes import free_port

from relaax.address import Address
from relaax.client import Client, Failure, VectorClient, transport
from relaax.client.transport import ClientAccess, TcpTransport
from relaax.errors import AccessDenied, ConfigurationError
from relaax.net.access import Access, TlsFiles
from relaax.net.access.process_access import access_while
from relaax.net.access.tls import server_context
from relaax.net.guarded_server import GuardedServer
from relaax.protocol.first_bytes import encode_token
from relaax.server.certificates.secrets_folder import SecretsFolder

TOKEN, LOCAL = "player-token-0123456789", Address.parse("localhost:7001")


@pytest.fixture(name="later")
def _later(monkeypatch):
    """What happens while a client pauses, in turn."""
    events, clock = [], [0.0]

    def pause(seconds):
        clock[0] += seconds
        if events:
            events.pop(0)()

    monkeypatch.setattr(transport.time, "sleep", pause)
    monkeypatch.setattr(transport.time, "monotonic", lambda: clock[0])
    return events


@pytest.mark.parametrize("content", [None, "", "player-tok"])
def test_a_file_that_is_just_written_is_read_again(tmp_path, later, content):
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    later += [lambda: None, lambda: path.write_text(f"{TOKEN}\n")]
    assert ClientAccess(token_file=path).token_for(LOCAL) == TOKEN
    assert not later


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "cannot be read"), ("", "printable"), ("short", "characters")]
)
@pytest.mark.usefixtures("later")
def test_a_file_that_has_no_token_for_seconds_is_refused(tmp_path, content, reason):
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=f"RELAAX_TOKEN_FILE: .*token.*{reason}"):
        ClientAccess(token_file=path).token_for(LOCAL)


@pytest.fixture(name="renewed")
def _renewed(tmp_path):
    """Two pairs of a certificate and its key, of one authority."""
    folder, pairs = SecretsFolder(tmp_path / "secrets"), []
    for _ in range(2):
        folder.sign(["localhost"], days=1, days_of_authority=1)
        pairs.append([(folder.path / f"environment.{end}").read_bytes() for end in ("crt", "key")])
    return pairs


@pytest.fixture(name="pair")
def _pair(tmp_path, renewed):
    """The files of a client while they are renewed: the certificate is copied, the key is not."""
    files = TlsFiles(tmp_path / "my.crt", tmp_path / "my.key", tmp_path / "secrets/ca.crt")
    (_, old_key), (new_certificate, _) = renewed
    files.cert.write_bytes(new_certificate)
    files.key.write_bytes(old_key)
    return files


def test_a_certificate_whose_key_is_just_copied_is_read_again(pair, renewed, later):
    later += [lambda: None, lambda: pair.key.write_bytes(renewed[1][1])]
    assert isinstance(ClientAccess(tls=pair).context(), ssl.SSLContext)
    assert not later


@pytest.mark.parametrize("name", ["cert", "key", "ca"])
def test_a_file_of_tls_that_is_missing_while_it_is_replaced_is_read_again(
    pair, renewed, later, name
):
    pair.key.write_bytes(renewed[1][1])
    path = getattr(pair, name)
    content = path.read_bytes()
    path.unlink()
    later += [path.touch, lambda: path.write_bytes(content)]
    assert isinstance(ClientAccess(tls=pair).context(), ssl.SSLContext)
    assert not later


@pytest.mark.usefixtures("later")
def test_a_certificate_with_the_key_of_another_is_refused_after_seconds(pair):
    with pytest.raises(
        ConfigurationError,
        match=r"my\.crt and .*my\.key: are no certificate and .* \(RELAAX_TLS_CERT, RELAAX_TLS_K",
    ):
        ClientAccess(tls=pair).context()


@pytest.mark.usefixtures("later")
def test_a_key_that_is_encrypted_is_refused_with_its_variable(pair, renewed):
    key = serialization.load_pem_private_key(renewed[1][1], None)
    pair.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigurationError, match=r"key that is encrypted .* \(RELAAX_TLS_KEY\)"):
        ClientAccess(tls=pair).context()


@pytest.mark.parametrize(("name", "variable"), [("ca", "CA"), ("cert", "CERT"), ("key", "KEY")])
@pytest.mark.usefixtures("later")
def test_a_file_of_tls_that_stays_away_is_named_with_its_variable(pair, name, variable):
    getattr(pair, name).unlink()
    with pytest.raises(ConfigurationError, match=rf"cannot be read: .* \(RELAAX_TLS_{variable}\)"):
        ClientAccess(tls=pair).context()


@pytest.mark.parametrize(
    ("answer", "is_final", "reason"),
    [
        (
            b"\7\0\0\0\6\0\1\0Oh.",
            True,
            "server does not speak TLS: start .* or unset RELAAX_TLS_CA",
        ),
        (b"HTTP/1.0 400 Bad Request\r\n\r\n", True, "does not speak TLS: start the server with"),
        (b"", False, "in the handshake of TLS; if the server speaks no TLS: start the server"),
        (None, False, "timed out in the handshake of TLS; if the server speaks no TLS"),
    ],
)
def test_an_answer_without_tls_is_certain_and_a_close_or_silence_may_pass(
    tmp_path, answer, is_final, reason
):
    """A server that closes, or is silent, may have no room, or start again."""
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign(["localhost"], days=1, days_of_authority=1)
    access, has_heard = ClientAccess(tls=TlsFiles(ca=folder.path / "ca.crt")), threading.Event()

    def serve():
        sock, _ = listener.accept()
        with sock:
            sock.recv(64 * 1024)
            if answer is None:
                assert has_heard.wait(20)
            else:
                sock.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        client = Client(
            f"localhost:{listener.getsockname()[1]}",
            transport=TcpTransport(access),
            connect_timeout_s=20 if answer is not None else 0.1,
        )
        with pytest.raises(Failure, match=reason) as failed:
            client.init([0.0])
        has_heard.set()
        server.join(20)
    assert failed.value.is_final is is_final


def test_a_server_that_accepts_no_certificate_and_closes_before_the_token_comes_is_heard(
    tmp_path, monkeypatch
):
    """The client's handshake has ended by then, and to send the token fails."""
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign(["localhost"], days=1, days_of_authority=1)
    files = TlsFiles(*(folder.path / name for name in ("server.crt", "server.key", "ca.crt")))
    has_closed = threading.Event()

    def refuse():
        sock, _ = listener.accept()
        with contextlib.suppress(ssl.SSLError):
            server_context(files, True).wrap_socket(sock, server_side=True)
        sock.close()
        has_closed.set()

    def encode_later(token):
        assert has_closed.wait(20)
        return encode_token(token)

    monkeypatch.setattr(transport, "encode_token", encode_later)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=refuse)
        server.start()
        connects = TcpTransport(ClientAccess(TOKEN, tls=TlsFiles(ca=files.ca)))
        place = Address("localhost", listener.getsockname()[1])
        with pytest.raises(AccessDenied, match="asks for a certificate, and this client has shown"):
            connects.connect(place, 20.0).receive(20.0)
        server.join(20)


@pytest.fixture(name="grpc_port")
def _grpc_port(tmp_path):
    """Yield the address of a gRPC port that speaks TLS, and what a client needs for it."""
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign(["localhost"], days=1, days_of_authority=1)
    files = TlsFiles(folder.path / "server.crt", folder.path / "server.key")
    address = f"localhost:{free_port()}"
    with access_while(Access(tls=files)):
        server = GuardedServer(1)
        server.start(address)
    yield address, TlsFiles(ca=folder.path / "ca.crt")
    server.stop(0).wait()


ANOTHER_PORT = "another port, for example the port of gRPC or --http-bind"


@pytest.mark.parametrize(
    ("client", "state"), [(Client, [0.0]), (partial(VectorClient, environments=1), [[0.0]])]
)
def test_a_client_at_a_grpc_port_says_that_it_may_be_one(grpc_port, client, state):
    address, files = grpc_port
    transport = TcpTransport(ClientAccess(tls=files))
    with (
        client(address, transport=transport, timeout_s=20) as playing,
        pytest.raises(Failure, match=ANOTHER_PORT) as failed,
    ):
        playing.init(state)
    assert not failed.value.is_final
