"""How long a call takes."""

import time
from collections.abc import Callable
from typing import Any


def best_us(function: Callable[[], Any], calls: int, rounds: int = 7) -> float:
    """Return the microseconds of a call in the best of some rounds of ``calls`` each.

    The first call, which compiles or allocates, is left out.
    """
    function()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6
