"""Addresses that other machines reach need TLS and tokens, or the user's word."""

import pytest

from relaax.address import Address, is_loopback
from relaax.errors import ConfigurationError
from relaax.net.access import Access, TlsFiles, TokenFile, refuse_unguarded, require_guarded


@pytest.fixture(name="tokens")
def _tokens(tmp_path):
    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    path.write_text("server 0123456789abcdef\n")
    return TokenFile(path)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True), ("127.0.0.1", True), ("127.1.2.3", True), ("::1", True),
        ("0.0.0.0", False), ("::", False), ("10.0.0.5", False), ("192.0.2.1", False),  # noqa: S104
        ("fe80::1", False), ("no-such-host.invalid", False),
    ],
)  # fmt: skip
def test_this_machine_alone_reaches_loopback(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.5", "::"])  # noqa: S104
def test_a_public_address_needs_both(host, tokens):
    address, tls = Address(host, 7001), TlsFiles()
    for access, missing in (
        (Access(), "no TLS (--tls-cert, --tls-key) and token (--auth-token-file)"),
        (Access(tls=tls), "no token (--auth-token-file)"),
        (Access(tokens=tokens), "no TLS (--tls-cert, --tls-key)"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            require_guarded(address, access)
        assert missing in str(refused.value)
        assert "relaax-certificates" in str(refused.value)
        assert "--insecure" in str(refused.value)
    require_guarded(address, Access(tls=tls, tokens=tokens))


def test_the_user_may_allow_it_and_is_reminded(caplog):
    require_guarded(Address("0.0.0.0", 7001), Access(is_insecure=True))  # noqa: S104
    assert "--insecure: everybody who reaches 0.0.0.0:7001 may use it" in caplog.text


def test_a_port_that_the_user_allows_is_opened_with_a_warning(caplog):
    refuse_unguarded(Address("0.0.0.0", 7001), Access(is_insecure=True))  # noqa: S104
    assert not caplog.text
    with pytest.raises(ConfigurationError, match=r"cannot listen at 0\.0\.0\.0:7001"):
        refuse_unguarded(Address("0.0.0.0", 7001), Access())  # noqa: S104


def test_this_machine_needs_nothing(caplog):
    require_guarded(Address("localhost", 7001), Access())
    assert not caplog.text
