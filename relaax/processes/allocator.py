"""Settings of the C library's memory allocator, where that is glibc."""

import ctypes
import sys

#: Parameters of glibc's mallopt(3).
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

#: Blocks above this size are mapped one by one, and returned to the system when they are freed.
_LARGE_BYTES = 256 * 1024

#: For a server that answers from many threads: with a pool for each of them, each would keep the
#: memory that its largest call has needed.
FEW_POOLS = 2

#: The largest threshold that glibc accepts.
_HUGE_BYTES = 32 * 1024 * 1024


def spare_memory() -> None:
    """Let this process hold little memory: one pool for all threads, large blocks mapped apart.

    For a program that runs in many processes. Does nothing if the C library is not glibc.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, 1)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def keep_memory(pools: int | None = None) -> None:
    """Let this process keep freed memory, so that later arrays can reuse it.

    pools: in so many pools, which threads share. Without a number the C library makes one for each
    thread, up to eight for each core, and each keeps the memory that its thread has once needed.

    For a process that makes the same large arrays again and again. To take them from the system,
    which clears their pages, costs more than the work on them. Does nothing if the C library is not
    glibc.
    """
    library = _glibc()
    if library is not None:
        if pools is not None:
            library.mallopt(_M_ARENA_MAX, pools)
        library.mallopt(_M_MMAP_THRESHOLD, _HUGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _HUGE_BYTES)


def release_unused_memory() -> None:
    """Return freed memory to the system. Does nothing if the C library is not glibc."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") else None
