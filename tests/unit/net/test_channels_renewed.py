"""Certificates that are renewed while a channel is used: real servers, and files that change."""

import logging
import queue
import shutil

import grpc
import psutil
import pytest
from processes import DEADLINE_S, free_port, wait_for

from relaax.net import channel_options
from relaax.net.access import Access, TlsFiles, TokenFile, file_stamp
from relaax.net.access.process_access import access_while
from relaax.net.channels import open_channel
from relaax.net.guarded_server import GuardedServer
from relaax.server.certificates.secrets_folder import SecretsFolder


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    """Files that are looked at before each call."""
    monkeypatch.setattr(file_stamp, "FRESH_S", 0.0)
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign([], 365, 3650)
    folder.write_tokens(renew=False)
    return folder


@pytest.fixture(name="access")
def _access(folder):
    with access_while(access_of(folder.path)):
        yield


def access_of(path):
    files = TlsFiles(path / "server.crt", path / "server.key", path / "ca.crt")
    return Access(tls=files, tokens=TokenFile(path / "tokens"))


@pytest.fixture(name="served")
def _served(access):
    served = Served()
    yield served
    served.stop()


@pytest.fixture(name="channel")
def _channel(served):
    with open_channel(served.url) as channel:
        yield channel


class Served:
    """A server that says what it is sent; and says to streams what it is told to."""

    def __init__(self):
        self.port = free_port()
        self.url = f"127.0.0.1:{self.port}"
        self.to_say = queue.SimpleQueue()
        self.start()

    def start(self):
        handlers = {
            "Say": grpc.unary_unary_rpc_method_handler(lambda request, _: request),
            "Stream": grpc.unary_stream_rpc_method_handler(self._stream),
            "Join": grpc.stream_unary_rpc_method_handler(lambda parts, _: b"".join(parts)),
            "Repeat": grpc.stream_stream_rpc_method_handler(lambda parts, _: parts),
        }
        self._server = GuardedServer(4, [grpc.method_handlers_generic_handler("test", handlers)])
        self._server.start(self.url)

    def stop(self):
        self.to_say.put(None)
        self._server.stop(0).wait()

    def connections(self):
        """How many connections this process has to the server."""
        return sum(
            1
            for each in psutil.Process().net_connections("tcp")
            if each.status == psutil.CONN_ESTABLISHED and each.raddr and each.raddr[1] == self.port
        )

    def _stream(self, request, context):
        while (said := self.to_say.get()) is not None:
            yield said


def says(channel, text=b"hello"):
    say = channel.unary_unary("/test/Say")
    return say(text, timeout=DEADLINE_S, wait_for_ready=True) == text


def renew(folder):
    """Let another authority sign all certificates: the old ones are worth nothing any more."""
    for name in ("ca.crt", "ca.key"):
        (folder.path / name).unlink()
    folder.sign([], 365, 3650)


def test_a_channel_goes_on_with_a_renewed_certificate_when_the_old_one_is_refused(
    folder, served, channel, tmp_path
):
    old = access_of(shutil.copytree(folder.path, tmp_path / "old"))
    say = channel.unary_unary("/test/Say")
    assert say(b"before", timeout=DEADLINE_S) == b"before"
    renew(folder)
    served.stop()
    served.start()
    assert say(b"after", timeout=DEADLINE_S, wait_for_ready=True) == b"after"
    with access_while(old), open_channel(served.url) as stale:
        with pytest.raises(grpc.RpcError) as refused:
            stale.unary_unary("/test/Say")(b"stale", timeout=DEADLINE_S)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_calls_of_all_kinds_take_the_renewed_certificate(folder, served, channel):
    said = channel.unary_unary("/test/Say")
    stream = channel.unary_stream("/test/Stream")
    join, repeat = channel.stream_unary("/test/Join"), channel.stream_stream("/test/Repeat")
    for _ in range(2):
        assert said.with_call(b"a", timeout=DEADLINE_S)[0] == b"a"
        assert said.future(b"a", timeout=DEADLINE_S).result() == b"a"
        assert join(iter([b"a", b"b"]), timeout=DEADLINE_S) == b"ab"
        assert list(repeat(iter([b"a", b"b"]), timeout=DEADLINE_S)) == [b"a", b"b"]
        served.to_say.put(b"a")
        served.to_say.put(None)
        assert list(stream(b"", timeout=DEADLINE_S)) == [b"a"]
        renew(folder)


def test_a_call_ends_on_the_connection_that_it_began_on(folder, served, channel):
    stream = channel.unary_stream("/test/Stream")(b"")
    served.to_say.put(b"first")
    assert next(stream) == b"first"
    for _ in range(3):
        renew(folder)
        assert says(channel)
    served.to_say.put(b"second")
    assert next(stream) == b"second"
    served.to_say.put(None)
    assert list(stream) == []


def test_connections_do_not_add_up(folder, access, monkeypatch):
    monkeypatch.setattr(channel_options, "IDLE_MS", 100)
    served = Served()
    with open_channel(served.url) as channel:
        for _ in range(4):
            renew(folder)
            assert says(channel)
        wait_for(lambda: served.connections() == 0, "the end of connections without a call")
        assert says(channel)
    served.stop()


def test_closing_ends_calls_on_replaced_connections_too(folder, served):
    channel = open_channel(served.url)
    stream = channel.unary_stream("/test/Stream")(b"")
    served.to_say.put(b"first")
    assert next(stream) == b"first"
    renew(folder)
    assert says(channel)
    channel.close()
    with pytest.raises(grpc.RpcError) as ended:
        next(stream)
    assert ended.value.code() is grpc.StatusCode.CANCELLED
    with pytest.raises(ValueError, match="closed channel"):
        says(channel)
    wait_for(lambda: served.connections() == 0, "the end of all connections")


def test_a_certificate_without_its_key_changes_nothing_until_both_are_there(
    folder, served, channel, tmp_path, caplog
):
    caplog.set_level(logging.INFO)
    assert says(channel)
    other = SecretsFolder(shutil.copytree(folder.path, tmp_path / "other"))
    renew(other)
    (folder.path / "server.crt").write_bytes((other.path / "server.crt").read_bytes())
    for _ in range(3):
        assert says(channel)
    assert caplog.text.count("are still shown the certificate read before") == 1
    assert "are no certificate and its key" in caplog.text
    for name in ("server.key", "ca.crt"):
        (folder.path / name).write_bytes((other.path / name).read_bytes())
    served.stop()
    served.start()
    assert says(channel)
    assert caplog.text.count("are shown the renewed certificate from now on") == 1
