"""How many wrong tokens an address may show: then it is refused, and its tokens are not looked at.

Each address has a budget that refills evenly: the token bucket, kept as one moment, as the generic
cell rate algorithm of ATM does (ITU-T I.371). A caller that hangs up or makes many calls at once
gains nothing: whether the budget is used up is seen before its token is.
"""

import ipaddress
import secrets
import time
from collections.abc import Callable
from enum import Enum, auto
from hashlib import blake2b

#: The time in which a budget that is used up refills.
WINDOW_S = 60.0

#: So many budgets there are, however many addresses: some share one, and a key that no caller knows
#: says which.
SLOTS = 65_536

#: A moment of the monotonic clock, which all processes of a machine share: float64.
_MOMENT_BYTES = 8


class Outcome(Enum):
    """What became of a token."""

    RIGHT = auto()
    WRONG = auto()
    #: It was not looked at.
    OVER_LIMIT = auto()


class RefusalLimit:
    """Lets each address show at most ``most`` wrong tokens in a minute.

    Processes that are forked later share the budgets, which never take more than half a MiB. Those
    of IPv6 are of networks (/64), any of which a single caller may have. For several threads. A
    process that is stopped while it looks at a token holds nobody up: beside it one more may pass.
    """

    def __init__(
        self, most: int, clock: Callable[[], float] = time.monotonic, slots: int = SLOTS
    ) -> None:
        from relaax.forked_memory import ForkedMemory  # of Linux, and clients import this module

        self.most = most
        self._clock = clock
        self._step_s = WINDOW_S / most
        self._slots = slots
        self._key = secrets.token_bytes(32)
        self._memory = ForkedMemory("relaax-refusals", slots * _MOMENT_BYTES)
        #: By slot: when its budget is whole again.
        self._whole_at = memoryview(self._memory.bytes).cast("d")

    def attempt(
        self, address: str, is_right: Callable[[], bool], *, is_exempt: bool = False
    ) -> Outcome:
        """Look at what a caller shows, unless its address has no budget left.

        address: without a port. is_exempt: look in any case; a wrong token still counts.
        """
        slot = self._slot(address)
        with self._memory.alone(slot * _MOMENT_BYTES, _MOMENT_BYTES):
            if not is_exempt and self._refills_in_s(slot) > 0:
                return Outcome.OVER_LIMIT
            if is_right():
                return Outcome.RIGHT
            now = self._clock()
            whole_at = max(self._whole_at[slot], now) + self._step_s
            self._whole_at[slot] = min(whole_at, now + WINDOW_S)
            return Outcome.WRONG

    def refills_in_s(self, address: str) -> float:
        """Return in how many seconds a token of an address is looked at again; 0 for now."""
        return self._refills_in_s(self._slot(address))

    def _refills_in_s(self, slot: int) -> float:
        used_s = self._whole_at[slot] - self._clock()
        left_s = WINDOW_S - used_s
        # What rounding takes away from the last one in a budget must not cost it.
        return self._step_s - left_s if left_s < 0.999 * self._step_s else 0.0

    def _slot(self, address: str) -> int:
        digest = blake2b(network_of(address).encode(), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "little") % self._slots


def network_of(address: str) -> str:
    """Return what shares a budget: an address of IPv4, a network of IPv6, or what is neither."""
    try:
        ip = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    except ValueError:  # of a socket with a path, say
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return f"{int(ip) >> 64:x}::/64"
