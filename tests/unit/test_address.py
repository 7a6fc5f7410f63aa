"""HOST:PORT."""

import pytest

from relaax.address import Address
from relaax.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost:7001", "localhost", 7001),
        ("0.0.0.0:0", "0.0.0.0", 0),  # noqa: S104
        ("[::1]:65535", "::1", 65535),
        ("[fe80::1%eth0]:7001", "fe80::1%eth0", 7001),
    ],
)
def test_an_address_is_read_and_written_the_same(text, host, port):
    assert Address.parse(text) == Address(host, port)
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost", "localhost:", ":7001", "localhost:65536", "localhost:-1", "localhost:x"),
        *("::1:7001", "[localhost]:7001", "[::1:7001", "[::1]x:7001", "[]:7001"),
        *("http://localhost:7001", "local host:7001", "localhost:\u0667"),
    ],
)
def test_what_is_no_address_is_refused_in_its_own_words(text):
    with pytest.raises(ConfigurationError) as error:
        Address.parse(text)
    assert str(error.value).startswith("an address is HOST:PORT")
    assert str(error.value).endswith(f"this is {text!r}")
