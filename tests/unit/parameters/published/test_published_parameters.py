"""Parameters that a learner publishes: seed 000, "Parameter server"."""

import numpy as np
import pytest

from relaax.algorithm_base import NewValues
from relaax.parameters.published import PublishedParameters

INITIAL = np.array([1.0, 2.0], np.float32)
ONE = np.array([3.0, 4.0], np.float32)
OTHER = np.array([5.0, 6.0], np.float32)


def published(*vectors):
    parameters = PublishedParameters(INITIAL, clock=lambda: 12.5)
    for iteration, vector in enumerate(vectors, start=1):
        parameters.push(NewValues(vector, iteration, f"number {iteration}"))
    return parameters


def test_before_anything_is_published_nothing_is_known_of_it():
    assert published().pull().info is None


def test_values_come_with_how_they_were_published():
    info = published(ONE).pull().info
    assert (info.time, info.iteration, info.message) == (12.5, 1, "number 1")
    assert info.hash != published(OTHER).pull().info.hash != ""


def test_actors_begin_with_the_initial_parameters():
    values = published().pull()
    np.testing.assert_array_equal(values.vector, INITIAL)
    assert (values.version.number, values.global_t) == (0, 0)


def test_the_same_values_again_are_no_new_version():
    parameters = published(ONE, ONE, OTHER)
    assert parameters.pull().version.number == 2
    assert parameters.pull().info.iteration == 3


def test_what_was_published_cannot_be_changed_by_the_publisher():
    vector = ONE.copy()
    parameters = published(vector)
    vector[:] = 0
    np.testing.assert_array_equal(parameters.pull().vector, ONE)
    with pytest.raises(ValueError, match="read-only"):
        parameters.pull().vector[0] = 1


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (np.zeros(3, np.float32), "have shape \\(3,\\), not \\(2,\\)"),
        (np.array([1, np.nan], np.float32), "are not finite"),
    ],
)
def test_what_is_no_such_vector_is_refused(vector, message):
    with pytest.raises(ValueError, match=message):
        published().push(NewValues(vector, 1))


def test_a_checkpoint_brings_back_what_was_published():
    before = published(ONE, OTHER)
    before.add(7)
    after = PublishedParameters(INITIAL)
    after.restore(before.snapshot())
    np.testing.assert_array_equal(after.pull().vector, OTHER)
    assert (after.version, after.global_t) == (2, 7)
    assert after.pull().info == before.pull().info


def test_a_checkpoint_of_nothing_brings_nothing_back():
    after = PublishedParameters(INITIAL)
    after.restore(published().snapshot())
    assert after.pull().info is None


def test_checkpoints_have_the_same_shapes_whatever_the_message():
    shapes = [
        {name: slot.shape for name, slot in parameters.snapshot().slots.items()}
        for parameters in (published(), published(ONE))
    ]
    assert shapes[0] == shapes[1]
    parameters = published()
    parameters.push(NewValues(ONE, 1, "ä" * 1000))
    again = PublishedParameters(INITIAL)
    again.restore(parameters.snapshot())
    assert again.pull().info.message == "ä" * 128


def test_nothing_changes_once_the_training_is_over():
    parameters = published(ONE)
    parameters.end_at(10)
    assert parameters.add(10) == 10
    assert parameters.add(5) == 10
    parameters.freeze()
    parameters.push(NewValues(OTHER, 9))
    assert parameters.pull().info.iteration == 1
    np.testing.assert_array_equal(parameters.pull().vector, ONE)


class TestTheAge:
    """Seconds by one clock that never runs backwards, and not by two machines' clocks."""

    def test_it_is_that_of_what_was_published_last(self):
        now = [5.0]
        parameters = PublishedParameters(INITIAL, stopwatch=lambda: now[0])
        assert parameters.pull().age_s is None
        parameters.push(NewValues(ONE, 1))
        now[0] = 7.5
        assert parameters.pull().age_s == 2.5
        parameters.push(NewValues(ONE, 2))
        assert parameters.pull().age_s == 0.0

    def test_a_clock_that_is_set_back_makes_it_not_negative(self):
        times = iter([1000.0, 10.0])
        parameters = PublishedParameters(INITIAL, clock=lambda: next(times))
        parameters.push(NewValues(ONE, 1))
        parameters.push(NewValues(OTHER, 2))
        assert parameters.pull().age_s >= 0

    def test_after_a_restart_it_is_not_known(self):
        restarted = PublishedParameters(INITIAL)
        restarted.restore(published(ONE).snapshot())
        assert restarted.pull().age_s is None
