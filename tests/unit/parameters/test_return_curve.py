"""The mean return over the steps, kept beside the checkpoints."""

import sys
from itertools import pairwise

import pytest

from relaax.checkpoints import DirectoryStore
from relaax.errors import CheckpointError
from relaax.parameters.process.return_curve import PlotLabels, ReturnCurve

LABELS = PlotLabels("a run", episodes=100, goal_return=475.0)


@pytest.fixture(name="store")
def _store(tmp_path):
    return DirectoryStore(tmp_path)


DAMAGED = [
    b"", b"nonsense", b"global_t,mean_return\n1\n", b"global_t,mean_return\n1,x\n", b"\xff\xfe",
    b"global_t,mean_return\n1\r2,3\n",
]  # fmt: skip


def curve_of(store, *points, **settings):
    curve = ReturnCurve(store, LABELS, **settings)
    for global_t, mean in points:
        curve.add(global_t, mean)
    return curve


def test_a_restarted_training_goes_on_with_the_points_up_to_its_checkpoint(store):
    curve_of(store, (10, 1.0), (20, 2.5), (30, 4.0)).save()
    restarted = ReturnCurve(store, LABELS)
    restarted.restore(20)
    restarted.add(25, 3.0)
    assert restarted.points == [(10, 1.0), (20, 2.5), (25, 3.0)]


def test_a_new_training_has_no_points(store):
    curve = ReturnCurve(store, LABELS)
    curve.restore(0)
    assert curve.points == []
    assert curve.draw() is None
    assert store.names() == []


def test_a_moment_without_a_step_adds_no_point(store):
    assert curve_of(store, (0, 0.0), (10, 1.0), (10, 2.0)).points == [(10, 1.0)]


def test_where_nothing_is_learnt_the_plot_stays_as_it_is(store):
    learnt = curve_of(store, (10, 1.0), (20, 2.5))
    learnt.save()
    learnt.draw()
    served = ReturnCurve(store, LABELS)
    served.restore(20)
    served.add(20, 3.0)
    assert served.draw() is None
    assert served.points == [(10, 1.0), (20, 2.5)]


def test_a_plot_that_a_kill_has_prevented_is_drawn_by_the_next_start(store):
    curve_of(store, (10, 1.0), (20, 2.5)).save()
    again = ReturnCurve(store, LABELS)
    again.restore(20)
    assert again.draw() is not None
    assert "return.png" in store.names()


def test_a_long_training_keeps_few_points_from_its_whole_length(store):
    curve = curve_of(store, *((step, 0.0) for step in range(1, 1001)), most_points=10)
    steps = [point.global_t for point in curve.points]
    assert 5 <= len(steps) <= 10
    assert steps[0] == 1
    assert steps[-1] > 800
    assert max(b - a for a, b in pairwise(steps)) < 300


@pytest.mark.parametrize("points", [[(10, 1.0)], [(10, 1.0), (20, float("nan")), (30, 3.0)]])
def test_the_plot_is_a_picture(store, tmp_path, points):
    assert curve_of(store, *points).draw() == f"plot of the return in {tmp_path}/return.png"
    assert (tmp_path / "return.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_there_is_the_table(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    said = curve_of(store, (10, 1.0)).draw()
    assert said == f"return by step in {tmp_path}/return.csv; matplotlib, if installed, plots it"


@pytest.mark.parametrize("table", DAMAGED)
def test_a_damaged_table_is_a_warning(store, caplog, table):
    store.put("return.csv", table)
    curve = ReturnCurve(store, LABELS)
    curve.restore(100)
    assert curve.points == []
    assert "begins anew" in caplog.text


def test_a_place_that_takes_nothing_is_a_warning(store, monkeypatch, caplog):
    def refuse(name, data):
        raise CheckpointError("the disk is full")

    monkeypatch.setattr(store, "put", refuse)
    curve = curve_of(store, (10, 1.0))
    curve.save()
    assert curve.draw() is None
    assert caplog.text.count("the return was not saved: the disk is full") == 2
