"""Keeps the C library from holding memory that nobody uses."""

import ctypes
import sys

#: Parameters of glibc's mallopt(3).
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

#: Larger blocks are taken from the system one by one, and go back to it when they are freed.
_LARGE_BYTES = 256 * 1024


def spare_memory() -> None:
    """Let this process hold little: one pool for all threads, large blocks apart.

    For processes of which there are many. Does nothing where the C library is not glibc.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, 1)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def release_unused_memory() -> None:
    """Give freed memory back to the system, where the C library is glibc."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") else None
