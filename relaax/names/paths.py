"""What is allowed as a name, a value and a time."""

import re
from dataclasses import dataclass

from relaax.address import Address
from relaax.errors import ConfigurationError

#: A segment of a name.
_SEGMENT = re.compile(r"[\w.:%-]+", re.ASCII)

#: Before the address of a parameter server with names, and before that of an etcd.
NAMES, ETCD = "names://", "etcd://"

#: Bytes of a name and of a value, and seconds of a lease.
MOST_NAME_BYTES, MOST_VALUE_BYTES, LONGEST_TTL_S = 512, 1024, 3600


def checked_name(name: str) -> str:
    """Return a name, a path of segments; ValueError if it is none."""
    if len(name) > MOST_NAME_BYTES or not all(map(_SEGMENT.fullmatch, name.split("/"))):
        raise ValueError(
            f"a name is a path such as trial1/streams/default, of letters, digits and _.:%-, with "
            f"{MOST_NAME_BYTES} characters at most, is {name[:80]!r}"
        )
    return name


def checked_value(value: str) -> str:
    """Return a value; ValueError if it is too long."""
    if len(value.encode()) > MOST_VALUE_BYTES:
        raise ValueError(f"a value has {MOST_VALUE_BYTES} bytes at most, is {len(value.encode())}")
    return value


def checked_ttl(ttl_s: int) -> int:
    """Return the time of a lease; ValueError if it is not allowed."""
    if not 1 <= ttl_s <= LONGEST_TTL_S:
        raise ValueError(f"the time of a lease is 1 to {LONGEST_TTL_S} seconds, is {ttl_s}")
    return ttl_s


@dataclass(frozen=True)
class NamedPlace:
    """A name, and the registry that knows it: ``names://HOST:PORT/NAME``, ``etcd://HOST:PORT/NAME``.

    The first is a parameter server.
    """

    scheme: str
    address: Address
    name: str

    @classmethod
    def parse(cls, text: str) -> "NamedPlace":
        """Return the place; ConfigurationError for other text."""
        for scheme in (NAMES, ETCD):
            if text.startswith(scheme):
                address, _, name = text.removeprefix(scheme).partition("/")
                try:
                    return cls(scheme, Address.parse(address), checked_name(name))
                except ValueError as error:
                    raise ConfigurationError(str(error)) from error
        raise ConfigurationError(
            f"must be {NAMES}HOST:PORT/NAME, with the address of a parameter server, or "
            f"{ETCD}HOST:PORT/NAME, is {text!r}"
        )

    def __str__(self) -> str:
        return f"{self.scheme}{self.address}/{self.name}"

    @property
    def registry(self) -> str:
        """The address of the registry, as ``registry_at`` takes it."""
        return f"{ETCD if self.scheme == ETCD else ''}{self.address}"
