"""Keeps the C library from holding memory that nobody uses."""

import ctypes
import sys

#: Parameters of glibc's mallopt(3).
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

#: Larger blocks are taken from the system one by one, and go back to it when they are freed.
_LARGE_BYTES = 256 * 1024

#: No block is larger, as far as a compute process goes; glibc takes no larger threshold than this.
_HUGE_BYTES = 32 * 1024 * 1024


def spare_memory() -> None:
    """Let this process hold little: one pool for all threads, large blocks apart.

    For processes of which there are many. Does nothing where the C library is not glibc.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, 1)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def keep_memory() -> None:
    """Let this process keep what it has freed, for the next time.

    For a process that makes the same large arrays over and over: taking them from the system, and
    clearing their pages, costs more than the work on them. Does nothing without glibc.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, _HUGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _HUGE_BYTES)


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
