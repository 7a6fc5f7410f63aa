"""What is allowed as a name, a value and a time."""

import re

#: A segment of a name.
_SEGMENT = re.compile(r"[\w.:-]+", re.ASCII)

#: Bytes of a name and of a value, and seconds of a lease.
MOST_NAME_BYTES, MOST_VALUE_BYTES, LONGEST_TTL_S = 512, 1024, 3600


def checked_name(name: str) -> str:
    """Return a name, a path of segments; ValueError if it is none."""
    if len(name) > MOST_NAME_BYTES or not all(map(_SEGMENT.fullmatch, name.split("/"))):
        raise ValueError(
            f"a name is a path such as trial1/streams/default, of letters, digits and _.:-, with "
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
