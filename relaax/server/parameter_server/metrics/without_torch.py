"""Keeps PyTorch out of a process that does not need it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_torch() -> Iterator[None]:
    """Hide PyTorch from the imports inside, unless it is loaded already.

    tensorboardX imports PyTorch wherever it is installed. That costs 200 MB and a second, and is
    needed only to write PyTorch's tensors, which RELAAX never does.
    """
    if "torch" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment] # None makes its import fail
    try:
        yield
    finally:
        del sys.modules["torch"]
