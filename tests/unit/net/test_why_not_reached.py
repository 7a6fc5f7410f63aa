"""Why a server is not reached, of real ports."""

import socket
from contextlib import closing, contextmanager

import pytest
from processes import free_port

from relaax.net.access import Access, TlsFiles
from relaax.net.access.process_access import access_while
from relaax.net.guarded_server import GuardedServer
from relaax.net.reachability import why_not_reached
from relaax.server.certificates.secrets_folder import SecretsFolder

TIMEOUT_S = 20.0


@pytest.fixture(name="folders", scope="module")
def _folders(tmp_path_factory):
    """Two folders of two authorities."""
    made = [tmp_path_factory.mktemp("secrets") / name for name in ("own", "other")]
    for folder in made:
        SecretsFolder(folder).sign([], 365, 3650)
    return made


def files(cert, ca):
    if cert is None:
        return TlsFiles(ca=ca / "ca.crt")
    return TlsFiles(cert / "server.crt", cert / "server.key", ca / "ca.crt")


@contextmanager
def served(tls, host="127.0.0.1"):
    """A server that knows no method."""
    url = f"{host}:{free_port()}"
    with access_while(Access(tls=tls)):
        server = GuardedServer(2)
        server.start(url)
    yield url
    server.stop(0).wait()


def why(url, tls=None, timeout_s=TIMEOUT_S):
    with access_while(Access(tls=tls)):
        return why_not_reached(url, timeout_s)


def test_a_server_that_accepts_and_is_accepted_is_reached(folders):
    own, _ = folders
    with served(files(own, own)) as url:
        assert why(url, files(own, own)) is None


def test_a_server_is_reached_where_neither_speaks_tls():
    with served(None) as url:
        assert why(url) is None


def test_nothing_listens():
    assert why(f"127.0.0.1:{free_port()}") == "Connection refused"


@pytest.mark.parametrize("host", ["two..dots", "label" * 13])
def test_a_name_that_no_machine_can_have_is_named(host):
    assert host in why(f"{host}:1")


def test_an_authority_that_is_not_the_servers_is_named(folders):
    own, other = folders
    with served(files(own, own)) as url:
        assert why(url, files(own, other)) == (
            f"its certificate is not signed by an authority in {other / 'ca.crt'} (--tls-ca)"
        )
        found = why(url, TlsFiles(own / "server.crt", own / "server.key"))
        assert found == "its certificate is not signed by an authority of this machine (--tls-ca)"


def test_a_certificate_of_another_host_is_not_one_of_another_authority(folders):
    own, _ = folders
    with served(files(own, own), "127.0.0.2") as url:
        assert "127.0.0.2" in (found := why(url, files(own, own)))
    assert "Hostname Verification Check failed" in found


def test_a_server_without_tls_is_recognised(folders):
    own, _ = folders
    with served(None) as url:
        assert "it does not speak TLS" in why(url, files(own, own))


def test_where_a_server_closes_the_remedy_for_a_process_without_tls_is_named(folders):
    own, _ = folders
    with served(files(own, own)) as url:
        assert "it speaks TLS and this process does not: give it --tls-ca" in why(url)


def test_where_a_server_closes_the_certificate_that_it_may_refuse_is_named(folders):
    own, other = folders
    with served(files(own, own)) as url:
        assert f"does not accept the certificate in {other}" in why(url, files(other, own))
        assert "where it asks for a certificate (--tls-cert)" in why(url, files(None, own))


def test_of_a_server_that_says_nothing_nothing_is_said():
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        assert why(f"127.0.0.1:{listener.getsockname()[1]}", timeout_s=0.2) is None


def test_a_file_that_cannot_be_read_is_the_reason(tmp_path):
    found = why("127.0.0.1:1", TlsFiles(ca=tmp_path / "gone.crt"))
    assert "gone.crt: cannot be read" in found
