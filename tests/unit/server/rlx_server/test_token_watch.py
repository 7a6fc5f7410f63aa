"""Connections end when the token that they have shown is deleted, and not before."""

import pytest
from json_requests import Act
from served_worker import BinaryClient, JsonClient, encoded

from relaax.net.access import TokenFile, file_stamp
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode
from relaax.protocol.first_bytes import encode_token
from relaax.server.rlx_server.entrance import Guard
from relaax.server.rlx_server.worker import loop
from relaax.steps import START

OLD, NEW, NEWEST = (f"environment-{number}-0123456789" for number in range(3))


class File:
    """A file of tokens, the newest first."""

    def __init__(self, path):
        self.path = path
        path.touch(mode=0o600)
        self.write(OLD)
        self.tokens = TokenFile(path)

    def write(self, *environments, role="environment"):
        lines = [f"{role} {token}\n" for token in environments]
        self.path.write_text("".join(["server server-0123456789\n", *lines]))


@pytest.fixture(name="file")
def _file(tmp_path, monkeypatch):
    monkeypatch.setattr(file_stamp, "FRESH_S", 0.0)
    monkeypatch.setattr(loop, "SWEEP_S", 0.0)  # each turn looks
    return File(tmp_path / "tokens")


@pytest.fixture(name="guarded")
def _guarded(serve, file):
    return serve(guard=Guard(file.tokens, hello_timeout_s=20.0))


class Showing:
    """A worker whose connections show a token first."""

    def __init__(self, served, token):
        self._served, self._token = served, token

    def __getattr__(self, name):
        return getattr(self._served, name)

    def connect(self):
        connection = self._served.connect()
        connection.send(encode_token(self._token))
        return connection


def playing(served, token=OLD):
    client = BinaryClient(Showing(served, token))
    client.ask([0], [START], [0], [1])
    return client


def test_a_deleted_token_ends_its_connections_with_the_reason_and_no_others(guarded, file, caplog):
    file.write(NEW, OLD)
    old, new = playing(guarded), playing(guarded, NEW)
    file.write(NEWEST, NEW)
    with pytest.raises(binary.Error, match="its token is not allowed any more") as said:
        old.answer()
    assert said.value.code == ErrorCode.GO_ELSEWHERE
    assert old.connection.receive() is None
    assert "closing the connection from a test: its token is not allowed any more" in caplog.text
    assert new.ask([0], [0], [1], [2]) is not None
    assert guarded.load == 1


def test_a_token_that_is_deleted_before_the_first_message_opens_no_connection(guarded, file):
    connection = Showing(guarded, OLD).connect()
    guarded.turn(3)
    file.write(NEW)
    guarded.turn(3)
    connection.send(binary.encode_hello(binary.Hello("run", "test")))
    guarded.turn(3)
    with pytest.raises(binary.Error, match="its token is not allowed any more") as said:
        binary.decode_welcome(connection.receive_now())
    assert said.value.code == ErrorCode.GO_ELSEWHERE
    assert guarded.load == 0


def test_messages_that_have_come_are_answered_before(guarded, file):
    client = playing(guarded)
    file.write(NEW)
    client.connection.send(encoded([0], [0], [1], [7]))
    assert client.answer().actions[0, 1] == 7
    with pytest.raises(binary.Error, match="its token is not allowed any more"):
        client.answer()


def test_an_answer_that_its_client_has_not_taken_yet_comes_first(guarded, file):
    client = BinaryClient(Showing(guarded, OLD), environments=60_000)
    numbers = list(range(60_000))
    client.tell(numbers, [START] * 60_000, [0] * 60_000, numbers)
    guarded.turn(5)  # the answer is longer than what the socket holds
    file.write(NEW)
    guarded.turn(3)
    assert len(client.answer().actions) == 60_000
    with pytest.raises(binary.Error, match="its token is not allowed any more"):
        client.answer()


def test_a_client_of_version_1_is_closed_without_a_word(guarded, file):
    client = JsonClient(Showing(guarded, OLD))
    client.tell(Act([1]))
    client.action()
    file.write(NEW)
    assert client.receive() is None
    assert guarded.load == 0


def test_a_token_ends_too_that_may_no_longer_play(guarded, file):
    client = playing(guarded)
    file.write(OLD, role="monitor")
    with pytest.raises(binary.Error, match="its token is not allowed any more"):
        client.answer()


@pytest.mark.parametrize("tokens", [(NEW, OLD), (NEWEST, NEW, OLD), None])
def test_renewal_and_a_file_that_cannot_be_read_end_no_connection(guarded, file, tokens):
    client = playing(guarded)
    if tokens is None:
        file.path.write_text("nonsense\n")
    else:
        file.write(*tokens)
    for _ in range(3):
        guarded.turn(3)
        assert client.ask([0], [0], [1], [2]) is not None


def test_without_tokens_nothing_is_looked_at(serve):
    client = BinaryClient(serve())
    assert client.ask([0], [START], [0], [1]) is not None


def test_the_file_is_compared_once_for_each_change(guarded, file, monkeypatch):
    client = playing(guarded)
    compared, allows = [], file.tokens.allows_digest
    monkeypatch.setattr(
        file.tokens, "allows_digest", lambda *shown: compared.append(shown) or allows(*shown)
    )
    for environments in ((NEW, OLD), (NEWEST, NEW, OLD)):
        compared.clear()
        file.write(*environments)
        for _ in range(3):
            assert client.ask([0], [0], [1], [2]) is not None
        assert len(compared) == 1
