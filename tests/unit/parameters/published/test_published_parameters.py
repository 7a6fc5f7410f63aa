"""Parameters that a learner publishes: seed 000, "Parameter server"."""

import numpy as np
import pytest

from relaax.algorithm_base import Publication, Wanted
from relaax.parameters.published import PublishedParameters

INITIAL = np.array([1.0, 2.0], np.float32)
ONE = np.array([3.0, 4.0], np.float32)
OTHER = np.array([5.0, 6.0], np.float32)


def published(*vectors):
    parameters = PublishedParameters(INITIAL, clock=lambda: 12.5)
    for iteration, vector in enumerate(vectors, start=1):
        parameters.publish(vector, iteration, f"number {iteration}")
    return parameters


class TestTheThreeForms:
    """``info``, ``parameter:<hash>`` and ``both:<hash>``, each where nothing was published yet, the
    caller has the same values, or others were published since.
    """

    @pytest.mark.parametrize("wanted", Wanted)
    def test_before_anything_is_published_there_is_nothing(self, wanted):
        assert published().fetch(wanted, "") == Publication(None, None, "")

    def test_info_alone(self):
        found = published(ONE).fetch(Wanted.INFO, "")
        assert found.vector is None
        assert (found.info.time, found.info.iteration, found.info.message) == (12.5, 1, "number 1")
        assert found.info.hash == found.hash != ""

    def test_the_parameter_that_the_caller_does_not_have(self):
        found = published(ONE).fetch(Wanted.PARAMETER, "another")
        np.testing.assert_array_equal(found.vector, ONE)
        assert found.info is None
        assert found.hash

    def test_the_parameter_that_the_caller_has(self):
        parameters = published(ONE)
        known = parameters.fetch(Wanted.INFO, "").hash
        assert parameters.fetch(Wanted.PARAMETER, known) == Publication(None, None, known)

    def test_both_that_the_caller_does_not_have(self):
        found = published(ONE, OTHER).fetch(Wanted.BOTH, "another")
        np.testing.assert_array_equal(found.vector, OTHER)
        assert found.info.iteration == 2

    def test_both_that_the_caller_has(self):
        parameters = published(ONE)
        known = parameters.fetch(Wanted.INFO, "").hash
        found = parameters.fetch(Wanted.BOTH, known)
        assert found.vector is None
        assert found.info.iteration == 1


def test_actors_begin_with_the_initial_parameters():
    vector, version, global_t = published().read()
    np.testing.assert_array_equal(vector, INITIAL)
    assert (version, global_t) == (0, 0)


def test_the_same_values_again_are_no_new_version():
    parameters = published(ONE, ONE, OTHER)
    assert parameters.read()[1] == 2
    assert parameters.fetch(Wanted.INFO, "").info.iteration == 3


def test_what_was_published_cannot_be_changed_by_the_publisher():
    vector = ONE.copy()
    parameters = published(vector)
    vector[:] = 0
    np.testing.assert_array_equal(parameters.read()[0], ONE)
    with pytest.raises(ValueError, match="read-only"):
        parameters.read()[0][0] = 1


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (np.zeros(3, np.float32), "have shape \\(3,\\), not \\(2,\\)"),
        (np.array([1, np.nan], np.float32), "are not finite"),
    ],
)
def test_what_is_no_such_vector_is_refused(vector, message):
    with pytest.raises(ValueError, match=message):
        published().publish(vector, 1)


def test_a_checkpoint_brings_back_what_was_published():
    before = published(ONE, OTHER)
    before.increment_global_t(7)
    after = PublishedParameters(INITIAL)
    after.restore(before.snapshot())
    np.testing.assert_array_equal(after.read()[0], OTHER)
    assert after.read()[1:] == (2, 7)
    assert after.fetch(Wanted.INFO, "") == before.fetch(Wanted.INFO, "")


def test_a_checkpoint_of_nothing_brings_nothing_back():
    after = PublishedParameters(INITIAL)
    after.restore(published().snapshot())
    assert after.fetch(Wanted.BOTH, "") == Publication(None, None, "")


def test_checkpoints_have_the_same_shapes_whatever_the_message():
    shapes = [
        {name: slot.shape for name, slot in parameters.snapshot().slots.items()}
        for parameters in (published(), published(ONE))
    ]
    assert shapes[0] == shapes[1]
    parameters = published()
    parameters.publish(ONE, 1, "ä" * 1000)
    again = PublishedParameters(INITIAL)
    again.restore(parameters.snapshot())
    assert again.fetch(Wanted.INFO, "").info.message == "ä" * 128


def test_nothing_changes_once_the_training_is_over():
    parameters = published(ONE)
    parameters.end_at(10)
    assert parameters.increment_global_t(10) == 10
    assert parameters.increment_global_t(5) == 10
    parameters.freeze()
    assert parameters.publish(OTHER, 9).iteration == 1
    np.testing.assert_array_equal(parameters.read()[0], ONE)


class TestTheAge:
    """Seconds by one clock that never runs backwards, and not by two machines' clocks."""

    def test_it_is_that_of_what_was_published_last(self):
        now = [5.0]
        parameters = PublishedParameters(INITIAL, stopwatch=lambda: now[0])
        assert parameters.age_s() is None
        parameters.publish(ONE, 1)
        now[0] = 7.5
        assert parameters.age_s() == 2.5
        assert parameters.fetch(Wanted.INFO, "").info.age_s == 2.5
        parameters.publish(ONE, 2)
        assert parameters.age_s() == 0.0

    def test_a_clock_that_is_set_back_makes_it_not_negative(self):
        times = iter([1000.0, 10.0])
        parameters = PublishedParameters(INITIAL, clock=lambda: next(times))
        parameters.publish(ONE, 1)
        parameters.publish(OTHER, 2)
        assert parameters.age_s() >= 0

    def test_after_a_restart_it_is_not_known(self):
        restarted = PublishedParameters(INITIAL)
        restarted.restore(published(ONE).snapshot())
        assert restarted.age_s() is None
        assert restarted.fetch(Wanted.INFO, "").info.age_s is None
