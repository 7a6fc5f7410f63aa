"""Sockets of servers listen where an option says."""

import socket

import pytest

from relaax.address import Address, peer_of
from relaax.errors import ConfigurationError
from relaax.net.access import Access
from relaax.net.access.process_access import access_while
from relaax.net.listening import listen_as_told, require_allowed

IPV4, IPV6 = "127.0.0.1", "::1"
ALL_OF_IPV4 = "0.0.0.0"  # noqa: S104 - what is tested


def has_ipv6():
    try:
        with socket.create_server((IPV6, 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize(
    ("host", "reached"),
    [(ALL_OF_IPV4, {IPV4}), ("::", {IPV4, IPV6}), (IPV4, {IPV4}), (IPV6, {IPV6})],
)
def test_a_socket_listens_where_it_was_asked_to_alone(host, reached):
    with access_while(Access(is_insecure=True)):
        listener = listen_as_told(Address(host, 0), "--bind")
    with listener:
        listener.setblocking(True)
        port = listener.getsockname()[1]
        for each in (IPV4, IPV6):
            if each not in reached:
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection((each, port))
                continue
            with socket.create_connection((each, port)) as client:
                accepted, address = listener.accept()
                accepted.close()
                assert peer_of(address) == f"{each}:{client.getsockname()[1]}"


def test_an_address_that_is_not_allowed_is_refused_with_its_option_before_it_is_used():
    require_allowed(bind=Address(IPV4, 7001), http_bind=None)
    with pytest.raises(
        ConfigurationError, match=r"--http-bind: cannot listen at 0\.0\.0\.0:7101: "
    ):
        require_allowed(bind=Address(IPV4, 7001), http_bind=Address(ALL_OF_IPV4, 7101))


def test_an_address_in_use_is_named_with_its_option():
    with listen_as_told(Address(IPV4, 0), "--bind") as listener:
        taken = Address(*listener.getsockname())
        with pytest.raises(ConfigurationError, match=f"--bind: cannot listen at {taken}: "):
            listen_as_told(taken, "--bind")
