"""Where actors find what a learner has published, by the learner's count of steps."""

import numpy as np

from relaax.algorithm_base import NewValues, NullMetrics
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.published import PublishedParameters, PublishedSource

INITIAL = np.array([1.0, 2.0], np.float32)


def served():
    service = ParameterService(PublishedParameters(INITIAL), NullMetrics())
    return service, PublishedSource(service)


def test_before_anything_is_published_there_are_the_initial_values_of_version_zero():
    _, source = served()
    values = source.pull()
    np.testing.assert_array_equal(values.vector, INITIAL)
    assert values.version.number == 0


def test_a_version_is_the_learners_count_of_steps():
    service, source = served()
    service.push(NewValues(INITIAL + 1, 7))
    values = source.pull()
    assert values.version.number == 7
    np.testing.assert_array_equal(values.vector, INITIAL + 1)


def test_what_was_returned_last_is_not_returned_again_but_to_one_that_knows_nothing():
    service, source = served()
    service.push(NewValues(INITIAL + 1, 7))
    known = source.pull().version
    assert source.pull(known).vector is None
    assert source.pull(None).vector is not None
    service.push(NewValues(INITIAL + 2, 8))
    assert source.pull(known).version.number == 8


def test_values_are_as_old_as_their_publication():
    now = [10.0]
    parameters = PublishedParameters(INITIAL, stopwatch=lambda: now[0])
    source = PublishedSource(ParameterService(parameters, NullMetrics()))
    parameters.push(NewValues(INITIAL + 1, 7))
    now[0] = 10.25
    assert source.pull().age_s == 0.25
