"""Calls of other servers go directly, or through the proxy that the process was told of."""

import re
from contextlib import closing

import pytest
from http_proxy import forget_exceptions, http_proxy, name_a_dead_proxy
from processes import REPOSITORY, free_port

from relaax.address import Address
from relaax.errors import BridgeError, ParameterServerAway
from relaax.net.access import Access, TlsFiles
from relaax.net.access.process_access import access_while
from relaax.net.guarded_server import GuardedServer
from relaax.net.reachability import why_not_reached
from relaax.parameters import Bridge
from relaax.server.certificates.secrets_folder import SecretsFolder

TIMEOUT_S = 20.0


@pytest.fixture(name="tls")
def _tls(tmp_path):
    SecretsFolder(tmp_path / "secrets").sign([], 365, 3650)
    path = tmp_path / "secrets"
    return TlsFiles(path / "server.crt", path / "server.key", path / "ca.crt")


@pytest.fixture(name="serve")
def _serve():
    """Start a server that knows no method, at the address that is returned."""
    servers = []

    def serve():
        url = f"127.0.0.1:{free_port()}"
        servers.append(GuardedServer(2))
        servers[-1].start(url)
        return url

    yield serve
    for server in servers:
        server.stop(0).wait()


def answer_of(url):
    """Return in words what a server answers, or why it does not."""
    with closing(Bridge(url, call_timeout_s=TIMEOUT_S, retry_for_s=0.0)) as bridge:
        try:
            bridge.phase()
        except ParameterServerAway as error:
            return f"away: {error}"
        except BridgeError:
            return "it knows no such method"
    return "status"


@pytest.mark.parametrize("is_guarded", [False, True])
def test_no_variable_of_the_environment_sends_calls_to_a_proxy(serve, tls, is_guarded, monkeypatch):
    name_a_dead_proxy(monkeypatch)
    with access_while(Access(tls=tls if is_guarded else None)):
        assert answer_of(serve()) == "it knows no such method"


@pytest.mark.parametrize("is_guarded", [False, True])
def test_a_process_that_is_told_of_a_proxy_calls_others_through_it(
    serve, tls, is_guarded, monkeypatch
):
    name_a_dead_proxy(monkeypatch)
    files = tls if is_guarded else None
    with http_proxy() as proxy:
        address = Address.parse(proxy.address)
        with access_while(Access(tls=files, proxy=address)):
            url = serve()
            assert answer_of(url) == "it knows no such method"
            assert proxy.asked == [f"CONNECT {url}"]
            assert why_not_reached(url, TIMEOUT_S) is None


def test_a_proxy_that_does_not_connect_is_named_with_its_reason(monkeypatch):
    forget_exceptions(monkeypatch)
    with (
        http_proxy(refuses=True) as proxy,
        access_while(Access(proxy=Address.parse(proxy.address))),
    ):
        why = why_not_reached("127.0.0.1:1", TIMEOUT_S)
    assert f"HTTP proxy returned response code 403, by the proxy {proxy.address}" in why


def test_one_module_opens_all_channels_of_the_product():
    """What opens one of its own would go to the proxies of the environment's variables."""
    opening = {
        str(path.relative_to(REPOSITORY))
        for folder in ("relaax", "algorithms", "environments", "examples")
        for path in (REPOSITORY / folder).rglob("*.py")
        if re.search(r"\b(in)?secure_channel\(", path.read_text())
    }
    assert opening == {"relaax/net/channels.py"}
