"""What the allocator's settings change in a process, with memory taken from glibc itself."""

import platform
import subprocess
import sys

import pytest

from relaax.processes import allocator

#: Takes blocks as arrays and networks do, gives them back, and prints how many MiB that returned.
PROGRAM = """
import ctypes, os, sys
from relaax.processes import allocator

library = ctypes.CDLL(None)
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]

def resident_mib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

def take(size, count):
    blocks = [library.malloc(size) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    return blocks

def mib_returned_by(release, blocks):
    before = resident_mib()
    for block in blocks:
        library.free(block)
    release()
    return round(before - resident_mib())

nothing = lambda: None
"""

needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")


def mib_returned(program: str) -> int:
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return int(completed.stdout)


@needs_glibc
def test_a_process_that_keeps_memory_does_not_return_a_large_block():
    program = "allocator.keep_memory(); print(mib_returned_by(nothing, take(16 * 2**20, 1)))"
    assert mib_returned(program) == 0


@needs_glibc
def test_a_process_that_spares_memory_returns_blocks_above_a_quarter_of_a_mebibyte():
    program = """
allocator.spare_memory()
mib_returned_by(nothing, take(2**19, 1))  # glibc's own threshold rises with each freed block
first, last = take(2**19, 32), take(2**17, 1)  # the last one keeps the heap's end in use
print(mib_returned_by(nothing, first))
"""
    assert mib_returned(program) >= 15


@needs_glibc
def test_unused_memory_below_a_block_in_use_can_be_returned():
    program = """
allocator.keep_memory()
first, last = take(2**12, 4096), take(2**12, 1)
assert mib_returned_by(nothing, first) == 0
print(mib_returned_by(allocator.release_unused_memory, []))
"""
    assert mib_returned(program) >= 15


@needs_glibc
@pytest.mark.parametrize(("pools", "kept_by"), [("None", range(7, 10)), ("1", range(3))])
def test_threads_that_share_a_pool_keep_one_block_in_all(pools, kept_by):
    """Without a limit each thread keeps the block that it has freed."""
    program = f"""
import threading
allocator.keep_memory({pools})
before, turn, all_have = resident_mib(), threading.Lock(), threading.Barrier(9)
def take_and_free():
    with turn:
        mib_returned_by(nothing, take(2**20, 1))
    all_have.wait()
    all_have.wait()
threads = [threading.Thread(target=take_and_free) for _ in range(8)]
for thread in threads: thread.start()
all_have.wait()
print(round(resident_mib() - before))
all_have.wait()
"""
    assert mib_returned(program) in kept_by


def test_another_c_library_is_left_as_it_is(monkeypatch):
    def load(name):
        raise AssertionError(f"{name} was loaded")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(allocator.ctypes, "CDLL", load)
    allocator.keep_memory()
    allocator.spare_memory()
    allocator.release_unused_memory()
