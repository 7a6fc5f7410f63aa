"""Columns are copied piece by piece, as they were when that began."""

import time

import numpy as np

import relaax.replay.snapshot as snapshot_module
from relaax.replay.snapshot import Snapshot


def test_many_blocks_are_copied_in_a_time_in_proportion_to_them(monkeypatch):
    monkeypatch.setattr(snapshot_module, "BYTES_AT_ONCE", 1024)
    rows = np.arange(200_000)
    snapshot = Snapshot({"number": rows.copy()}, rows, blocks=rows)
    begin = time.process_time()
    while snapshot.copy_some():
        pass
    assert time.process_time() - begin < 4  # it takes 0.2 s; 18 s if each block is searched for
    np.testing.assert_array_equal(snapshot.columns["number"], rows)


def test_the_oldest_blocks_are_copied_first_since_they_are_evicted_next(monkeypatch):
    monkeypatch.setattr(snapshot_module, "BYTES_AT_ONCE", 1)
    rows = np.array([4, 5, 0, 1, 2, 3])
    column = np.arange(6)
    snapshot = Snapshot({"number": column}, rows, blocks=np.array([4, 0, 2]))
    assert snapshot.copy_some()
    column[4:] = -1
    snapshot.evicted(rows[:2])  # they are copied already
    snapshot.evicted(rows[2:4])
    column[:2] = -1
    while snapshot.copy_some():
        pass
    assert snapshot.columns["number"].tolist() == [4, 5, 0, 1, 2, 3]
