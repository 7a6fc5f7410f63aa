"""Connections that have not proved yet that they may be served: what they cost, how they end."""

import contextlib
import socket
import ssl
import struct

import pytest
from json_requests import Act, encode_request
from served_worker import ClientsEnd, encoded
from tls_hello import client_hello

from relaax.errors import ProtocolError
from relaax.net.access import Refusals, TlsFiles, TokenFile
from relaax.net.access.tls import client_context, server_context
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode, Hello
from relaax.protocol.first_bytes import encode_token
from relaax.protocol.tls_socket import TlsSocket
from relaax.server.certificates.secrets_folder import SecretsFolder
from relaax.server.rlx_server import lobby as lobbies
from relaax.server.rlx_server.entrance import Guard
from relaax.server.rlx_server.lobby import Lobby
from relaax.server.rlx_server.tally import ACCESS_DENIED, TURNED_AWAY, private_row
from relaax.steps import START
from relaax.telemetry.throttled_log import AT_ONCE

HELLO = binary.encode_hello(Hello("run", "test"))
ACT = encode_request(Act([1.0]))
TOKEN, OTHER, SERVERS = "environment-0123456789", "some-other-one-0123456789", "server-0123456789"
DEADLINE_S = 20.0


@pytest.fixture(name="tokens")
def _tokens(tmp_path):
    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    path.write_text(f"server {SERVERS}\nenvironment {TOKEN}\nmonitor {OTHER}\n")
    return TokenFile(path)


class Street:
    """A lobby, and the clients' ends of what is in it."""

    def __init__(self, tokens=None, hello_timeout_s=DEADLINE_S, tls=None):
        self.refusals = Refusals()
        guard = Guard(tokens, hello_timeout_s, self.refusals)

        def opened(sock):
            return FrameConnection(
                sock if tls is None else TlsSocket(sock, tls), frame_timeout_s=DEADLINE_S
            )

        self.row, self.ended = private_row(), []
        self.lobby = Lobby(guard, opened, self.row, on_end=self.ended.append)
        self._clients = []

    def connect(self, peer="192.0.2.1:4711", refusal=None):
        ours, theirs = socket.socketpair()
        self.lobby.enter(theirs, peer, refusal)
        self._clients.append(ClientsEnd(ours))
        return self._clients[-1]

    def close(self):
        self.lobby.turn_away()
        self.lobby.close()
        for client in self._clients:
            client.close()


@pytest.fixture(name="open_street")
def _open_street():
    street = Street()
    yield street
    street.close()


@pytest.fixture(name="guarded")
def _guarded(tokens):
    street = Street(tokens)
    yield street
    street.close()


@pytest.fixture(name="files")
def _files(tmp_path):
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign([], 365, 3650)
    return TlsFiles(*(folder.path / name for name in ("server.crt", "server.key", "ca.crt")))


@pytest.fixture(name="encrypted")
def _encrypted(files):
    """A lobby whose port speaks TLS."""
    street = Street(tls=server_context(files, True))
    yield street
    street.close()


def frames(*payloads):
    return b"".join(struct.pack("<I", len(payload)) + payload for payload in payloads)


def refusal(client):
    """Return the error that a client gets before its connection is closed; None for none."""
    payload = client.receive(DEADLINE_S)
    if payload is None:
        return None
    with pytest.raises(binary.Error) as refused:
        binary.decode_welcome(payload)
    with contextlib.suppress(ConnectionResetError):  # it had said more, which was not read
        assert client.receive(DEADLINE_S) is None
    return refused.value


def test_a_refused_client_gets_the_reason_after_its_hello_and_is_not_counted_again(open_street):
    client = open_street.connect(refusal="2 connections are served (--max-connections)")
    assert list(open_street.lobby.proved()) == []
    client.send(HELLO)
    (entrance,) = open_street.lobby.proved()
    entrance.refuse(ErrorCode.GO_ELSEWHERE, entrance.refusal)
    error = refusal(client)
    assert error.code == ErrorCode.GO_ELSEWHERE
    assert "2 connections are served (--max-connections)" in str(error)
    open_street.connect(refusal="no").send(b"nonsense")
    assert list(open_street.lobby.proved()) == []
    assert open_street.row[TURNED_AWAY] == 0


@pytest.mark.parametrize("first", [HELLO, ACT, b" " + ACT])
def test_a_whole_first_message_is_proof_where_no_token_is_asked_for(open_street, first):
    client = open_street.connect()
    data = frames(first)
    for byte in data[:-1]:
        client.sock.sendall(bytes([byte]))
        assert list(open_street.lobby.proved()) == []
    client.sock.sendall(data[-1:])
    (entrance,) = list(open_street.lobby.proved())
    assert len(open_street.lobby) == 0
    assert bytes(entrance.messages.receive_now()) == first
    entrance.messages.close()


def test_much_of_a_large_first_message_is_proof(open_street):
    """A lobby holds no more of it than that."""
    client = open_street.connect()
    large = encode_request(Act([1.0] * 100_000))
    found = []
    for begin in range(0, len(large), 10_000):
        client.sock.sendall((frames(large) if begin == 0 else large)[begin:][:10_000])
        found += open_street.lobby.proved()
        if found:
            break
    assert begin == 60_000
    found[0].messages.close()


def test_an_unnecessary_token_is_ignored_and_a_second_one_is_not_logged(open_street, caplog):
    open_street.connect().send(encode_token(TOKEN))
    client = open_street.connect()
    client.sock.sendall(frames(encode_token(TOKEN), HELLO))
    (entrance,) = open_street.lobby.proved()
    assert bytes(entrance.messages.receive_now()) == HELLO
    entrance.messages.close()
    client = open_street.connect()
    client.sock.sendall(frames(encode_token(TOKEN), encode_token(TOKEN)))
    assert list(open_street.lobby.proved()) == []
    assert "its first message begins with b'\\x07RLX', unlike any message of RLX" in caplog.text
    assert TOKEN[:4] not in caplog.text


@pytest.mark.parametrize("length", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"GET ", b"SSH-"])
def test_a_length_that_no_frame_may_have_is_refused_at_once(open_street, length):
    client = open_street.connect()
    client.sock.sendall(length)
    assert list(open_street.lobby.proved()) == []
    assert client.receive(DEADLINE_S) is None
    assert open_street.row[TURNED_AWAY] == 1


@pytest.mark.parametrize("first", [HELLO, ACT])
@pytest.mark.parametrize("token", [TOKEN, SERVERS])
@pytest.mark.parametrize("at_once", [True, False])
def test_the_right_token_is_proof_and_no_later_byte_is_lost(guarded, first, token, at_once):
    client = guarded.connect()
    data = frames(encode_token(token), first, first)
    found = []
    for part in [data] if at_once else [data[i : i + 1] for i in range(len(data))]:
        client.sock.sendall(part)
        found += list(guarded.lobby.proved())
    (entrance,) = found
    assert [bytes(entrance.messages.receive_now()) for _ in range(2)] == [first, first]
    entrance.messages.close()


@pytest.mark.parametrize("token", [None, "a-wrong-one-0123456789", OTHER, TOKEN[:-1]])
def test_without_the_right_token_nothing_is_served_and_the_client_hears_why(guarded, token):
    client = guarded.connect()
    shown = [] if token is None else [encode_token(token)]
    client.sock.sendall(frames(*shown, HELLO))
    assert list(guarded.lobby.proved()) == []
    assert refusal(client).code == ErrorCode.ACCESS
    assert guarded.row[ACCESS_DENIED] == 1
    assert guarded.row[TURNED_AWAY] == 0
    assert guarded.ended == ["192.0.2.1:4711"]


def test_a_guess_counts_though_its_caller_does_not_wait_for_the_answer(guarded):
    for _ in range(3):
        with contextlib.closing(guarded.connect()) as client:
            client.sock.sendall(frames(encode_token("a-wrong-one-0123456789")))
            assert list(guarded.lobby.proved()) == []
        assert list(guarded.lobby.proved()) == []
    assert len(guarded.lobby) == 0
    assert guarded.row[ACCESS_DENIED] == 3
    assert guarded.row[TURNED_AWAY] == 0


def test_silence_and_nonsense_are_no_guesses(open_street):
    open_street.connect().send(b"nonsense")
    assert list(open_street.lobby.proved()) == []
    assert open_street.row[TURNED_AWAY] == 1
    assert open_street.row[ACCESS_DENIED] == 0


def test_a_client_of_version_1_is_closed_without_a_word(guarded):
    client = guarded.connect()
    client.sock.sendall(frames(ACT))
    assert list(guarded.lobby.proved()) == []
    assert refusal(client) is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (frames(encoded([0], [START], [0], [1])), "unlike any message of RLX"),
        (struct.pack("<I", 2**31) + b"aaaa", "was announced"),
        (struct.pack("<I", 0) + b"aaaa", "was announced"),
    ],
)
def test_nonsense_is_closed_at_once(open_street, caplog, said, reason):
    client = open_street.connect()
    client.sock.sendall(said)
    assert list(open_street.lobby.proved()) == []
    assert len(open_street.lobby) == 0
    assert reason in caplog.text
    assert refusal(client) is None


def test_a_token_that_is_too_long_is_closed_at_once(guarded, caplog):
    client = guarded.connect()
    client.sock.sendall(struct.pack("<I", 10_000) + encode_token("x" * 500))
    assert list(guarded.lobby.proved()) == []
    assert len(guarded.lobby) == 0
    assert "a frame of 10000 bytes was announced; 1 to 1024 are allowed" in caplog.text


def test_silence_has_a_deadline(caplog):
    street = Street(hello_timeout_s=0.0)
    client = street.connect()
    assert list(street.lobby.proved(looks_at_all=True)) == []
    assert refusal(client) is None
    assert "it has not begun within 0 s (--hello-timeout)" in caplog.text
    street.close()


def test_the_oldest_goes_when_too_many_wait(open_street, monkeypatch, caplog):
    monkeypatch.setattr(lobbies, "MOST_WAITING", 3)
    clients = [open_street.connect(f"192.0.2.1:{number}") for number in range(5)]
    assert len(open_street.lobby) == 3
    assert [client.receive(DEADLINE_S) for client in clients[:2]] == [None, None]
    assert (
        "closing the connection from 192.0.2.1:1: 3 others wait that have not begun, either"
        in caplog.text
    )
    clients[4].sock.sendall(frames(HELLO))
    (entrance,) = list(open_street.lobby.proved())
    assert entrance.peer == "192.0.2.1:4"
    entrance.messages.close()


@pytest.mark.usefixtures("log_clock")
def test_a_flood_of_strangers_is_a_few_lines_of_each_kind(caplog, monkeypatch):
    monkeypatch.setattr(lobbies, "MOST_WAITING", 50)
    street = Street(hello_timeout_s=0.0)
    for number in range(200):
        street.connect(f"192.0.2.1:{number}")
    list(street.lobby.proved(looks_at_all=True))
    for number in range(100):
        street.connect().sock.sendall(struct.pack("<I", 8) + b"%08d" % number)
        list(street.lobby.proved())
    assert street.row[TURNED_AWAY] == 300
    for kind in (
        "others wait that have not begun",
        "it has not begun within",
        "unlike any message of RLX",
    ):
        assert caplog.text.count(kind) == AT_ONCE, kind
    street.close()


def test_a_client_that_leaves_is_forgotten(open_street):
    open_street.connect().close()
    assert list(open_street.lobby.proved()) == []
    assert len(open_street.lobby) == 0
    assert open_street.row[TURNED_AWAY] == 0


def test_a_child_that_closes_its_copy_leaves_the_connections_open(open_street):
    ours, theirs = socket.socketpair()
    kept = theirs.dup()  # as another process has it
    open_street.lobby.enter(theirs, "192.0.2.1:4711")
    open_street.lobby.close()
    with ours, kept:
        ClientsEnd(ours).send(HELLO)
        assert FrameConnection(kept).receive(DEADLINE_S) == HELLO


def test_a_refusal_after_the_proof_is_said(open_street):
    client = open_street.connect()
    client.send(HELLO)
    (entrance,) = list(open_street.lobby.proved())
    entrance.refuse(ErrorCode.GO_ELSEWHERE, "7 connections are served (--max-connections)")
    said = refusal(client)
    assert said.code == ErrorCode.GO_ELSEWHERE
    assert said.text == "7 connections are served (--max-connections)"


def test_begun_now_needs_no_frame_to_be_whole():
    ours, theirs = socket.socketpair()
    with ours:
        connection = FrameConnection(theirs)
        assert connection.begun_now() == b""
        ours.sendall(struct.pack("<I", 5) + b"ab")
        assert connection.begun_now() == b"ab"
        ours.sendall(b"cde")
        assert connection.begun_now() == b"abcde"
        assert bytes(connection.receive_now()) == b"abcde"
        ours.sendall(struct.pack("<I", 0) + b"a")
        with pytest.raises(ProtocolError):
            connection.begun_now()
        connection.close()


@pytest.fixture(name="doubly_guarded")
def _doubly_guarded(files, tokens):
    """A lobby whose port speaks TLS and asks for a token, and looks at one wrong one a minute."""
    street = Street(tokens, tls=server_context(files, True))
    yield street
    street.close()


@pytest.mark.parametrize("token", [TOKEN, "wrong" * 4])
def test_a_client_without_tls_does_not_hear_whether_its_token_is_right(doubly_guarded, token):
    for _ in range(3):
        client = doubly_guarded.connect()
        client.sock.sendall(frames(encode_token(token), HELLO))
        assert list(doubly_guarded.lobby.proved()) == []
        assert refusal(client).text.startswith("this port speaks TLS, and the client does not")
    assert doubly_guarded.refusals.totals() == {"RLX": 3}


@pytest.mark.parametrize("shown", [[], [encode_token(TOKEN)], [encode_token("wrong" * 4)]])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_client_without_tls_is_told_that_tls_is_spoken(encrypted, caplog, shown, at_once):
    client = encrypted.connect()
    for payload in [frames(*shown, HELLO)] if at_once else map(frames, [*shown, HELLO]):
        client.sock.sendall(payload)
        assert list(encrypted.lobby.proved()) == []
    error = refusal(client)
    assert error.code == ErrorCode.ACCESS
    assert error.text == "this port speaks TLS, and the client does not (RELAAX_TLS_CA)"
    assert encrypted.row[ACCESS_DENIED] == 1
    assert len(encrypted.lobby) == 0
    assert caplog.text.count("this port speaks TLS, and the client does not") == 1
    assert TOKEN not in caplog.text


def test_a_client_of_version_1_without_tls_is_named_in_the_log_and_closed(encrypted, caplog):
    client = encrypted.connect()
    client.send(ACT)
    assert list(encrypted.lobby.proved()) == []
    assert refusal(client) is None
    assert "this port speaks TLS, and the client does not" in caplog.text


@pytest.mark.usefixtures("log_clock")
def test_a_flood_of_clients_without_tls_is_a_few_lines(encrypted, caplog):
    for _ in range(200):
        encrypted.connect().send(HELLO)
        list(encrypted.lobby.proved())
    assert encrypted.row[ACCESS_DENIED] == 200
    assert caplog.text.count("this port speaks TLS") < 30


@pytest.mark.parametrize("at_once", [True, False])
def test_a_client_with_tls_is_answered_without_so_that_it_knows(open_street, caplog, at_once):
    client, hello = open_street.connect(), client_hello()
    for part in [hello] if at_once else [hello[:3], hello[3:]]:
        client.sock.sendall(part)
        assert list(open_street.lobby.proved()) == []
    error = refusal(client)
    assert error.code == ErrorCode.PROTOCOL
    assert error.text.startswith("the peer speaks TLS instead of RLX")
    assert caplog.text.count("the peer speaks TLS instead of RLX") == 1


@pytest.mark.parametrize("first", [b"nonsense" * 4, b"GET / HTTP/1.1\r\n\r\n", frames(HELLO)[:3]])
def test_other_peers_without_tls_hear_nothing_of_rlx(encrypted, first):
    client = encrypted.connect()
    client.sock.sendall(first)
    assert list(encrypted.lobby.proved()) == []
    with contextlib.suppress(OSError):  # it may be closed already
        client.sock.shutdown(socket.SHUT_WR)
    while len(encrypted.lobby):
        assert list(encrypted.lobby.proved()) == []
    said = b""
    with contextlib.suppress(ConnectionResetError):  # it had said more, which was not read
        said = client.sock.recv(1000)
    assert b"RLX" not in said
    assert b"RELAAX" not in said


def test_a_client_with_tls_is_served_however_its_hello_is_cut(encrypted, files):
    """Of a hello of TLS a byte may come alone; what it is, is looked at once."""
    sock, ours = socket.socketpair()
    encrypted.lobby.enter(sock, "192.0.2.1:4711")
    context, to_us, to_server = client_context(files), ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(to_us, to_server, server_hostname="localhost")
    found = []
    ours.settimeout(DEADLINE_S)
    while not found:
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
            tls.write(frames(HELLO))
        for byte in to_server.read():
            ours.sendall(bytes([byte]))
            found += encrypted.lobby.proved()
        if not found:
            to_us.write(ours.recv(64 * 1024))
    assert bytes(found[0].messages.receive_now()) == HELLO
    found[0].messages.close()
    ours.close()
