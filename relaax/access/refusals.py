"""Attempts without the right proof: counted, logged, and limited for each address."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from relaax.access.refusal_limit import Outcome, RefusalLimit
from relaax.access.refusal_log import Kind, RefusalLog


@dataclass(frozen=True)
class Refused:
    """Why a caller is refused."""

    #: What it is told.
    reason: str
    #: Seconds after which its token will be looked at; None if it has been, and is wrong.
    retry_after_s: int | None = None

    @property
    def is_over_limit(self) -> bool:
        """Whether its token has not been looked at."""
        return self.retry_after_s is not None


class Refusals:
    """Counts what was refused, at all ports of a process. For several threads.

    ``limit`` is that of wrong tokens, which all processes of a server share; None for no limit.
    They share ``log``, too; without one this process has a log of its own when it needs it.
    """

    def __init__(
        self,
        limit: RefusalLimit | None = None,
        clock: Callable[[], float] = time.monotonic,
        log: RefusalLog | None = None,
    ) -> None:
        self._limit = limit
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()

    def totals(self) -> dict[str, int]:
        """Return how many there were, by the kind of port."""
        with self._lock:
            return dict(self._totals)

    def add(self, port: str, address: str, reason: str) -> None:
        """Take note of a caller that has shown nothing that could be right.

        ``port``: its kind, such as gRPC. ``address``: the caller's, without its own port.
        """
        self._add(Kind.NOTHING_SHOWN, port, address, reason)

    def say_left_out(self, *, ends: bool = False) -> None:
        """Sum up in the log what it has left out and is due, or all of it where a process ends.

        To be called once a second by one of the processes that share the log.
        """
        if self._log is not None:
            self._log.say_left_out(ends=ends)

    def check(
        self,
        port: str,
        address: str,
        why_wrong: Callable[[], str | None],
        *,
        is_exempt: bool = False,
    ) -> Refused | None:
        """Return why a caller that shows a token is refused; None if it is not.

        ``why_wrong`` returns what is wrong with the token, or None. It is not asked where the
        address has shown too many wrong ones, unless the caller ``is_exempt``.
        """
        limit, wrong = self._limit, None

        def is_right() -> bool:
            nonlocal wrong
            wrong = why_wrong()
            return wrong is None

        if limit is None:
            is_right()
        elif limit.attempt(address, is_right, is_exempt=is_exempt) is Outcome.OVER_LIMIT:
            return self._over_limit(limit, port, address)
        if wrong is None:
            return None
        self._add(Kind.WRONG_TOKEN, port, address, wrong)
        return Refused(wrong)

    def _over_limit(self, limit: RefusalLimit, port: str, address: str) -> Refused:
        self._add(
            Kind.OVER_LIMIT,
            port,
            address,
            f"its address has shown {limit.most} wrong tokens within a minute "
            "(--max-refusals-per-address)",
        )
        return Refused(
            "the address of this machine, as the server sees it, has shown "
            f"{limit.most} wrong tokens within a minute (--max-refusals-per-address), so that no "
            "token from there is looked at: wait a minute, and look there for a program with a "
            "wrong token",
            max(1, math.ceil(limit.refills_in_s(address))),
        )

    def _add(self, kind: Kind, port: str, address: str, reason: str) -> None:
        with self._lock:
            self._totals[port] += 1
            if self._log is None:
                self._log = RefusalLog(self._clock)
        self._log.add(kind, port, address, reason)
