"""Keeps PyTorch out of a process that does not need it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_torch() -> Iterator[None]:
    """Let imports inside find no PyTorch, unless it is loaded already.

    tensorboardX imports it wherever it is installed: 200 MB and a second of time, for tensors that
    nobody gives to it here.
    """
    if "torch" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment] # Python's own way to say "not there"
    try:
        yield
    finally:
        del sys.modules["torch"]
