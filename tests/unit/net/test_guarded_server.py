"""Calls that need a token, over real gRPC on the loopback interface."""

import logging
import ssl
import threading
from contextlib import closing, contextmanager

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc
from processes import free_port

from relaax.address import Address
from relaax.algorithm_base import Phase
from relaax.errors import ParameterServerAway, TokenRefused
from relaax.net.access import Access, Refusals, Role, TlsFiles, TokenFile, file_stamp
from relaax.net.access.process_access import access_while
from relaax.net.access.tls import server_contexts
from relaax.net.channels import open_channel
from relaax.net.guarded_server import GuardedServer, ProvedPeers
from relaax.parameters import Bridge, bridge_pb2, bridge_pb2_grpc
from relaax.server.certificates.secrets_folder import SecretsFolder

TOKEN, WRONG = "server-0123456789", "a-wrong-one-0123456789"
DEADLINE_S = 20


class Servicer(bridge_pb2_grpc.ParameterServerServicer):
    """Answers one question, and counts how often it was asked."""

    def __init__(self):
        self.asked = 0

    def GetStatus(self, request, context):  # noqa: N802 - gRPC calls it so
        self.asked += 1
        return bridge_pb2.Status(phase=bridge_pb2.Status.TRAINING)


class Port:
    """A guarded server, and how it is called."""

    def __init__(self, refusals, address=None):
        self.refusals = refusals
        self.servicer = Servicer()
        self.health = health.HealthServicer()
        self.address = address or f"127.0.0.1:{free_port()}"
        self._server = GuardedServer(4)
        bridge_pb2_grpc.add_ParameterServerServicer_to_server(self.servicer, self._server.grpc)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._server.grpc)
        reflection.enable_server_reflection([health.SERVICE_NAME], self._server.grpc)
        self._server.start(self.address)

    def close(self):
        self._server.stop(0).wait()

    def ask(self, channel, token, method="GetStatus"):
        """Call with a token; return the code of the answer."""
        call = channel.unary_unary(
            f"/{bridge_pb2.DESCRIPTOR.package}.ParameterServer/{method}",
            bridge_pb2.Nothing.SerializeToString,
            bridge_pb2.Status.FromString,
        )
        try:
            call(bridge_pb2.Nothing(), timeout=DEADLINE_S, metadata=shown(token))
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK


def shown(token):
    return () if token is None else (("authorization", f"Bearer {token}"),)


@contextmanager
def connected(address):
    """Yield a channel that has a connection of its own."""
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield channel


@pytest.fixture(name="tokens")
def _tokens(tmp_path):
    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    path.write_text(f"server {TOKEN}\n")
    return TokenFile(path)


@pytest.fixture(name="port")
def _port(tokens):
    refusals = Refusals()
    with access_while(Access(tokens=tokens, refusals=refusals)), closing(Port(refusals)) as port:
        yield port


@pytest.fixture(name="channel")
def _channel(port):
    with connected(port.address) as channel:
        yield channel


def test_all_kinds_of_methods_answer_callers_with_a_token(port, channel):
    assert port.ask(channel, TOKEN) is grpc.StatusCode.OK
    metadata = shown(TOKEN)
    names = reflection_pb2.ServerReflectionRequest(list_services="")
    answers = list(
        reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
            iter([names, names]), timeout=DEADLINE_S, metadata=metadata
        )
    )
    assert [len(each.list_services_response.service) for each in answers] == [1, 1]
    stub = health_pb2_grpc.HealthStub(channel)
    watched = stub.Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S, metadata=metadata)
    assert next(watched).status == health_pb2.HealthCheckResponse.SERVING
    port.health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    assert next(watched).status == health_pb2.HealthCheckResponse.NOT_SERVING
    watched.cancel()
    assert port.ask(channel, TOKEN, "Elsewhere") is grpc.StatusCode.UNIMPLEMENTED


def test_watching_callers_hold_no_thread(port, channel):
    """The server has four."""
    stub = health_pb2_grpc.HealthStub(channel)
    watched = [
        stub.Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S, metadata=shown(TOKEN))
        for _ in range(6)
    ]
    for each in watched:
        assert next(each).status == health_pb2.HealthCheckResponse.SERVING
    assert port.ask(channel, TOKEN) is grpc.StatusCode.OK
    for each in watched:
        each.cancel()


@pytest.mark.parametrize("token", [None, "", WRONG, TOKEN[:-1]])
@pytest.mark.parametrize("method", ["GetStatus", "Elsewhere"])
def test_without_the_right_token_no_method_is_called_or_known(port, channel, token, method):
    assert port.ask(channel, token, method) is grpc.StatusCode.UNAUTHENTICATED
    assert port.servicer.asked == 0
    assert port.refusals.totals() == {"gRPC": 1}


def test_no_message_is_waited_for_before_a_call_is_refused(port, channel):
    """Those of a right token are: its call is held until the message comes."""
    method = f"/{bridge_pb2.DESCRIPTOR.package}.ParameterServer/GetStatus"
    ends = threading.Event()

    def nothing():
        ends.wait(DEADLINE_S)
        yield from ()

    call = channel.stream_unary(method, None, None)
    try:
        with pytest.raises(grpc.RpcError) as refused:
            call(nothing(), timeout=DEADLINE_S, metadata=shown(WRONG))
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    finally:
        ends.set()
    with pytest.raises(grpc.RpcError) as refused:
        call(iter(()), timeout=DEADLINE_S, metadata=shown(TOKEN))
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "this method takes one message, and none came" in refused.value.details()


def test_a_right_token_is_accepted_however_many_wrong_ones_its_address_has_shown(port):
    with connected(port.address) as guesser, connected(port.address) as other:
        for _ in range(50):
            assert port.ask(guesser, WRONG) is grpc.StatusCode.UNAUTHENTICATED
        assert port.ask(other, TOKEN) is grpc.StatusCode.OK
        assert port.ask(guesser, TOKEN) is grpc.StatusCode.OK
    assert port.refusals.totals() == {"gRPC": 50}


def test_begun_connections_and_connections_with_a_right_token_are_counted(tokens, tmp_path):
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign(["127.0.0.1"], days=1, days_of_authority=1)
    names = ("server.crt", "server.key", "ca.crt")
    cert, key, ca = ((folder.path / name).read_bytes() for name in names)
    refusals = Refusals()
    access = Access(
        tls=TlsFiles(*(folder.path / name for name in names)), tokens=tokens, refusals=refusals
    )
    answers = []
    with access_while(access), closing(Port(refusals)) as port:
        for credentials, token in (
            (grpc.ssl_channel_credentials(ca), TOKEN),
            (grpc.ssl_channel_credentials(ca, key, cert), WRONG),
            (grpc.ssl_channel_credentials(ca, key, cert), TOKEN),
        ):
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
            before = access.grpc_connections.totals()["begun"]
            with grpc.secure_channel(port.address, credentials, options) as channel:
                answers.append(port.ask(channel, token))
            assert access.grpc_connections.totals()["begun"] > before
        assert port.servicer.asked == 1
    assert answers == [
        grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.OK
    ]  # fmt: skip
    assert access.grpc_connections.totals()["proved"] == 1
    assert refusals.totals() == {"gRPC": 1}


def test_calls_that_nobody_waits_for_yet_go_on_side_by_side(tokens):
    meet = threading.Barrier(2)

    class Both(Servicer):
        def GetStatus(self, request, context):  # noqa: N802 - gRPC calls it so
            meet.wait(DEADLINE_S)
            return bridge_pb2.Status(phase=bridge_pb2.Status.TRAINING)

    address = f"127.0.0.1:{free_port()}"
    with access_while(Access(tokens=tokens, refusals=Refusals())):
        server = GuardedServer(4)
        bridge_pb2_grpc.add_ParameterServerServicer_to_server(Both(), server.grpc)
        server.start(address)
        with open_channel(address) as channel:
            ask = bridge_pb2_grpc.ParameterServerStub(channel).GetStatus
            calls = [ask.future(bridge_pb2.Nothing(), timeout=DEADLINE_S) for _ in range(2)]
            assert [call.result().phase for call in calls] == [bridge_pb2.Status.TRAINING] * 2
    server.stop(0).wait()


def test_a_call_that_is_refused_is_made_again_if_its_file_has_a_newer_token(tmp_path):
    """Also one whose answer is waited for later."""
    asks = threading.Event()

    class Held(TokenFile):
        def why_refused(self, *arguments):
            asks.wait(DEADLINE_S)
            return super().why_refused(*arguments)

    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    path.write_text(f"server {TOKEN[::-1]}\n")
    callers = [TokenFile(path), TokenFile(path)]
    assert [each.own(Role.SERVER) for each in callers] == [TOKEN[::-1]] * 2
    path.write_text(f"server {TOKEN}\n")  # which the server has seen, and the callers not yet
    refusals = Refusals()
    with access_while(Access(tokens=Held(path), refusals=refusals)):
        port = Port(refusals)
    with closing(port):
        asks.set()
        with access_while(Access(tokens=callers[0])), closing(Bridge(port.address)) as bridge:
            assert bridge.phase() is Phase.TRAINING
        with access_while(Access(tokens=callers[1])), open_channel(port.address) as channel:
            ask = bridge_pb2_grpc.ParameterServerStub(channel).GetStatus
            asks.clear()
            call = ask.future(bridge_pb2.Nothing(), timeout=DEADLINE_S)
            asks.set()
            answer = call.result()
            assert answer.phase == bridge_pb2.Status.TRAINING
        assert (port.servicer.asked, refusals.totals()) == (2, {"gRPC": 2})
        other = path.with_name("others")
        other.touch(mode=0o600)
        other.write_text(f"server {TOKEN[::-1]}\n")
        with (
            access_while(Access(tokens=TokenFile(other))),
            closing(Bridge(port.address)) as bridge,
            pytest.raises(TokenRefused, match="is not in the --auth-token-file of this server"),
        ):
            bridge.phase()


def test_one_method_waits_in_its_own_time_while_another_one_is_answered(tokens, caplog):
    class Half(Servicer):
        def IncrementGlobalT(self, request, context):  # noqa: N802 - gRPC calls it so
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")

    address = f"127.0.0.1:{free_port()}"
    server = GuardedServer(4)
    bridge_pb2_grpc.add_ParameterServerServicer_to_server(Half(), server.grpc)
    server.start(address)

    def count():
        with pytest.raises(ParameterServerAway):
            bridge.increment_global_t()

    with closing(Bridge(address, retry_for_s=1.0)) as bridge:
        counting = threading.Thread(target=count)
        counting.start()
        while counting.is_alive():
            assert bridge.phase() is Phase.TRAINING
        counting.join()
    server.stop(0).wait()
    assert [each for each in caplog.messages if each.startswith("waiting")] == [
        f"waiting for parameter server {address} (not now)"
    ]


@pytest.mark.parametrize("name", ["server.crt", "server.key", "ca.crt"])
def test_a_renewed_file_of_no_use_is_logged_once_and_the_pair_before_is_shown(
    tokens, tmp_path, monkeypatch, caplog, name
):
    monkeypatch.setattr(file_stamp, "FRESH_S", 0.0)
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign(["127.0.0.1"], days=1, days_of_authority=1)
    tls = TlsFiles(*(folder.path / each for each in ("server.crt", "server.key", "ca.crt")))
    files = [tls.ca, folder.path / "environment.key", folder.path / "environment.crt"]
    credentials = grpc.ssl_channel_credentials(*(path.read_bytes() for path in files))

    def is_answered():
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.secure_channel(port.address, credentials, options) as channel:
            return port.ask(channel, TOKEN) is grpc.StatusCode.OK

    refusals = Refusals()
    with (
        access_while(Access(tls=tls, tokens=tokens, refusals=refusals)),
        closing(Port(refusals)) as port,
    ):
        assert is_answered()
        content = (folder.path / name).read_bytes()
        for number in range(1, 3):
            damaged = content.replace(b"BEGIN", b"BEGINS", number)
            if name == "server.key":  # that of another certificate
                damaged = (folder.path / f"{('environment', 'ca')[number - 1]}.key").read_bytes()
            (folder.path / name).write_bytes(damaged)
            assert [is_answered() for _ in range(3)] == [True] * 3
            assert caplog.text.count("the certificate read before is still shown: ") == number
        (folder.path / name).write_bytes(content)
        assert is_answered()
    assert caplog.text.count("the certificate read before is still shown: ") == 2


@pytest.mark.usefixtures("log_clock")
def test_a_renewed_certificate_is_shown_by_a_server_that_runs_which_says_so_once(
    tokens, tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(file_stamp, "FRESH_S", 0.0)
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign(["127.0.0.1"], days=1, days_of_authority=1)
    tls = TlsFiles(folder.path / "server.crt", folder.path / "server.key")
    refusals, of_another_port = Refusals(), server_contexts(tls, False)
    with (
        access_while(Access(tls=tls, tokens=tokens, refusals=refusals)),
        closing(Port(refusals)) as port,
    ):
        place = Address.parse(port.address)
        shown = [ssl.get_server_certificate((place.host, place.port))]
        assert "from now on" not in caplog.text
        folder.sign(["127.0.0.1"], days=1, days_of_authority=1)
        shown += [ssl.get_server_certificate((place.host, place.port)) for _ in range(2)]
        of_another_port.content()
    said = f"callers are shown the renewed certificate from now on: {tls.cert}"
    assert [record.message for record in caplog.records].count(said) == 1
    assert shown[0] != shown[1]
    assert shown[1].split() == tls.cert.read_text().split()


def test_only_so_many_connections_are_remembered():
    peers = ProvedPeers(most=3)
    for number in range(5):
        assert peers.add(f"ipv4:192.0.2.1:{number}")
    assert [f"ipv4:192.0.2.1:{number}" in peers for number in range(5)] == [0, 0, 1, 1, 1]
