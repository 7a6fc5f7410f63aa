"""Arrays in bytes, and where they lie there."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from relaax.replay.array_bytes import array_at, packed


@pytest.fixture(name="often_switched")
def _often_switched():
    """Let threads come in turn as often as possible."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


def sent(arrays):
    """Return the arrays as they are found in the bytes."""
    parts, places = packed(arrays)
    data = b"".join(parts)
    return [
        array_at(data, (array.dtype, array.shape), place)
        for array, place in zip(arrays, places, strict=True)
    ]


@pytest.mark.usefixtures("often_switched")
def test_each_array_lies_where_its_place_says_though_other_threads_pack_too():
    """An array that is looked at for a moment may have the identity of an earlier one."""

    def pack(first):
        arrays = [np.full(3, first + number, np.float32) for number in range(200)]
        return all(
            (found == array).all() for found, array in zip(sent(arrays), arrays, strict=True)
        )

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(pack, range(200)))


def test_parts_of_one_array_are_written_once_beside_others():
    frames = np.arange(40, dtype=np.float32).reshape(4, 5, 2).copy()
    arrays = [frames[:, :-1], np.arange(3), frames[:, 1:], frames[:, ::2].copy(), np.zeros((0, 2))]
    parts, _ = packed(arrays)
    assert [part.nbytes for part in parts] == [160, 24, 96, 0]
    for found, array in zip(sent(arrays), arrays, strict=True):
        np.testing.assert_array_equal(found, array)
