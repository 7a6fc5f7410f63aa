"""The parameter server of a learner that publishes."""

import numpy as np
import pytest
from checkpoints import saver, steps

from relaax.algorithm_base import NewValues, NullMetrics
from relaax.parameters.parameter_server import ParameterServer, ParameterService
from relaax.parameters.published import PublishedParameters

INITIAL = np.array([1.0, 2.0], np.float32)
ONE = np.array([3.0, 4.0], np.float32)
OTHER = np.array([5.0, 6.0], np.float32)


@pytest.fixture(name="serve")
def _serve(tmp_path):
    """Makes a parameter server as it starts, whose checkpoints are below ``tmp_path``."""

    def serve():
        store = PublishedParameters(INITIAL)
        service = ParameterService(store, NullMetrics())
        server = ParameterServer(store, service, saver(tmp_path), {"network": 1}, 1e9)
        server.restore_latest_checkpoint()
        return server

    return serve


def test_what_was_published_between_checkpoints_is_there_after_a_restart(serve):
    server = serve()
    server.bridge().increment_global_t(10)
    server.bridge().push(NewValues(ONE, 1))
    server.save_checkpoint()
    server.bridge().increment_global_t(5)
    server.bridge().push(NewValues(OTHER, 2, "the second"))
    before = server.bridge().pull().info
    server.save_published()
    again = serve()
    found = again.bridge().pull()
    np.testing.assert_array_equal(found.vector, OTHER)
    assert found.info == before
    assert again.global_t() == 15


def test_what_a_checkpoint_has_is_not_saved_once_more(serve, tmp_path):
    server = serve()
    server.bridge().push(NewValues(ONE, 1))
    server.save_checkpoint()
    server.bridge().increment_global_t(10)
    server.save_published()
    assert steps(tmp_path) == [0]


def test_only_what_is_new_is_saved(serve, tmp_path):
    server = serve()
    server.save_published()
    assert steps(tmp_path) == []
    server.bridge().push(NewValues(ONE, 1))
    for global_t in (10, 20):
        server.bridge().increment_global_t(10)
        server.save_published()
        assert steps(tmp_path) == [10], global_t
    server.bridge().push(NewValues(ONE, 2))  # the same values are news, too
    server.save_published()
    assert steps(tmp_path) == [20]
