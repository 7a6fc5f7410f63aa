"""Why a server is not reached, of real ports."""

import socket
import threading
from contextlib import closing, contextmanager, suppress

import pytest

from relaax.address import Address
from relaax.net.access import TlsFiles
from relaax.net.access.tls import server_context
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
def served(serve, host="127.0.0.1"):
    """Hand each connection to ``serve``, on a thread that ends with this."""
    with closing(socket.create_server((host, 0))) as listener:

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, suppress(OSError):  # the client has refused, or left
                    serve(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield Address(host, listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


def with_tls(tls, clients_need_certificates=True):
    context = server_context(tls, clients_need_certificates)

    def serve(connection):
        with context.wrap_socket(connection, server_side=True) as protected:
            protected.send(b"settings")
            protected.recv(1)

    return serve


def without_tls(connection):
    connection.send(b"\0\0\0\4\0\0\0\0\0")  # as gRPC begins, before it is asked
    connection.recv(1)


def test_a_server_that_accepts_and_is_accepted_is_reached(folders):
    own, _ = folders
    with served(with_tls(files(own, own))) as address:
        assert why_not_reached(address, files(own, own), TIMEOUT_S) is None


def test_a_server_is_reached_where_neither_speaks_tls():
    with served(without_tls) as address:
        assert why_not_reached(address, None, TIMEOUT_S) is None


def test_nothing_listens():
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
    assert why_not_reached(address, None, TIMEOUT_S) == "Connection refused"


@pytest.mark.parametrize("host", ["two..dots", "label" * 13])
def test_a_name_that_no_machine_can_have_is_not_looked_up(host):
    said = f"{host} cannot be the name of a machine"
    assert why_not_reached(Address(host, 1), None, TIMEOUT_S) == said


def test_an_authority_that_is_not_the_servers_is_named(folders):
    own, other = folders
    with served(with_tls(files(own, own))) as address:
        why = why_not_reached(address, files(own, other), TIMEOUT_S)
        assert why == (
            f"its certificate is not signed by an authority in {other / 'ca.crt'} (--tls-ca)"
        )
        why = why_not_reached(address, TlsFiles(own / "server.crt", own / "server.key"), TIMEOUT_S)
        assert "no authority that this machine knows" in why


def test_a_certificate_of_another_host_is_not_one_of_another_authority(folders):
    own, _ = folders
    with served(with_tls(files(own, own)), "127.0.0.2") as address:
        why = why_not_reached(address, files(own, own), TIMEOUT_S)
    assert why.startswith("its certificate is not accepted: ")
    assert "'127.0.0.2'" in why


def test_a_server_without_tls_is_recognised(folders):
    own, _ = folders
    with served(without_tls) as address:
        assert "it does not speak TLS" in why_not_reached(address, files(own, own), TIMEOUT_S)


@pytest.mark.parametrize("clients_need_certificates", [True, False])
def test_a_server_with_tls_is_recognised(folders, clients_need_certificates):
    own, _ = folders
    with served(with_tls(files(own, own), clients_need_certificates)) as address:
        assert "it speaks TLS, and this process does not" in why_not_reached(
            address, None, TIMEOUT_S
        )


def test_a_server_that_closes_after_it_has_seen_the_certificate_refuses_it(folders):
    own, _ = folders

    def serve(connection):  # as gRPC does: without an alert
        with server_context(files(own, own), False).wrap_socket(connection, server_side=True):
            pass

    with served(serve) as address:
        why = why_not_reached(address, files(own, own), TIMEOUT_S)
        assert why.startswith(f"it does not accept the certificate in {own / 'server.crt'} (--tls-")
        why = why_not_reached(address, files(None, own), TIMEOUT_S)
        assert why.startswith("it asks for a certificate, and there is none: give --tls-cert")


def test_a_refusal_that_the_server_explains_is_handed_on(folders):
    own, other = folders
    with served(with_tls(files(own, own))) as address:
        why = why_not_reached(address, TlsFiles(None, None, own / "ca.crt"), TIMEOUT_S)
        assert why == "it asks for a certificate, and there is none: give --tls-cert and --tls-key"
        why = why_not_reached(address, files(other, own), TIMEOUT_S)
        assert "does not accept the certificate" in why


def test_of_a_server_that_says_nothing_nothing_is_said(folders):
    own, _ = folders
    with served(lambda connection: connection.recv(10_000) and connection.recv(1)) as address:
        assert why_not_reached(address, files(own, own), 0.2) is None
        assert why_not_reached(address, None, 0.2) is None


def test_a_file_that_cannot_be_read_is_the_reason(tmp_path):
    why = why_not_reached(Address("127.0.0.1", 1), TlsFiles(ca=tmp_path / "gone.crt"), TIMEOUT_S)
    assert "gone.crt: cannot be read" in why
