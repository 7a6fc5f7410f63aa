"""At which addresses a gRPC server listens: at those that were asked for, and no other."""

import socket

import grpc
import psutil
import pytest
from processes import DEADLINE_S, free_port

from relaax.net.access import Access, TlsFiles
from relaax.net.access.process_access import access_while
from relaax.net.guarded_server import GuardedServer
from relaax.server.certificates.secrets_folder import SecretsFolder


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


NEEDS_IPV6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")

IPV4, IPV6 = "127.0.0.1", "::1"
ALL_OF_IPV4 = "0.0.0.0"  # noqa: S104 - what is tested


@pytest.fixture(name="serve")
def _serve():
    servers = []

    def serve(address, access=None):
        with access_while(access or Access(is_insecure=True)):
            servers.append(GuardedServer(2))
            servers[-1].start(address)

    yield serve
    for server in servers:
        server.stop(0).wait()


def connects(host, port):
    try:
        socket.create_connection((host, port), timeout=DEADLINE_S).close()
    except ConnectionRefusedError:
        return False
    return True


def answers(host, port):
    """Whether gRPC is spoken there: a method that is not known is an answer."""
    at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with grpc.insecure_channel(at) as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary("/no/Method")(b"", timeout=DEADLINE_S, wait_for_ready=True)
    return refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


@NEEDS_IPV6
@pytest.mark.parametrize(
    ("host", "reached"),
    [
        (ALL_OF_IPV4, {IPV4}), ("[::]", {IPV4, IPV6}), ("127.0.0.1", {IPV4}), ("[::1]", {IPV6}),
    ],
)  # fmt: skip
def test_a_server_listens_where_it_was_asked_to_alone(serve, host, reached):
    port = free_port()
    serve(f"{host}:{port}")
    assert {each for each in (IPV4, IPV6) if connects(each, port)} == reached
    assert all(answers(each, port) for each in reached)


@NEEDS_IPV6
def test_so_does_one_with_tls(serve, tmp_path):
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign([], 365, 3650)
    files = TlsFiles(folder.path / "server.crt", folder.path / "server.key")
    port = free_port()
    serve(f"0.0.0.0:{port}", Access(tls=files, is_insecure=True))
    assert connects(IPV4, port)
    assert not connects(IPV6, port)


@NEEDS_IPV6
def test_another_program_may_have_the_port_of_the_other_kind(serve):
    port = free_port()
    with socket.create_server(("::", port), family=socket.AF_INET6):
        serve(f"0.0.0.0:{port}")
        assert answers(IPV4, port)
    assert not connects(IPV6, port)
    with socket.create_server(("::", port), family=socket.AF_INET6):  # it is still free
        assert connects(IPV6, port)


@NEEDS_IPV6
def test_a_port_that_was_just_used_is_taken_of_ipv4_alone_too(serve):
    """Connections of the program before are not quite over, of either kind."""
    port = free_port()
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    with listener:
        for host in (IPV4, IPV6):
            with socket.create_connection((host, port)) as client:
                listener.accept()[0].close()  # who closes first has to wait
                assert client.recv(1) == b""
    serve(f"0.0.0.0:{port}")
    assert answers(IPV4, port)
    assert not connects(IPV6, port)


@NEEDS_IPV6
def test_a_port_of_the_systems_choice_is_of_ipv4_alone_too(serve):
    def listening():
        found = psutil.Process().net_connections("tcp")
        return {tuple(each.laddr) for each in found if each.status == psutil.CONN_LISTEN}

    before = listening()
    serve("0.0.0.0:0")
    ((host, port),) = listening() - before
    assert host == ALL_OF_IPV4
    assert answers(IPV4, port)


def test_an_address_in_use_is_an_error(serve):
    port = free_port()
    with (
        socket.create_server((IPV4, port)),
        pytest.raises(OSError, match=f"cannot listen at 0.0.0.0:{port}: .*in use"),
    ):
        serve(f"0.0.0.0:{port}")
    assert not connects(IPV6, port)
