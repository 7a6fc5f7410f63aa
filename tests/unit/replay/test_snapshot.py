"""Columns are copied piece by piece, as they were when that began."""

import numpy as np

import relaax.replay.storage as storage_module
from relaax.replay.storage import Snapshot


def test_rows_that_are_evicted_meanwhile_are_copied_before_and_not_again(monkeypatch):
    monkeypatch.setattr(storage_module, "BYTES_AT_ONCE", 1)
    rows = np.array([4, 5, 0, 1, 2, 3])
    column = np.arange(8)
    snapshot = Snapshot({"number": column}, rows)
    assert snapshot.copy_some()
    for evicted in ([4, 5], [2], [7]):  # the first is copied already, and the last was not there
        snapshot.evicted(np.array(evicted))
        column[evicted] = -1
    while snapshot.copy_some():
        pass
    assert snapshot.columns["number"].tolist() == [4, 5, 0, 1, 2, 3]
