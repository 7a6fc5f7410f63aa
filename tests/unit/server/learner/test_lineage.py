"""What a learner shows: the name of its training lies beside its checkpoints."""

import numpy as np
import pytest

from relaax.algorithm_base import Lineage, NewValues, NullMetrics
from relaax.checkpoints import DirectoryStore
from relaax.errors import ConfigurationError, NotContinued
from relaax.parameters.optimizers import SGD
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.published import PublishedParameters
from relaax.server.learner.lineage import connect_restored, lineage_in
from relaax.server.serial.memory_bridge import MemoryBridge


def begun(directory, restored=0, is_afresh=False):
    return lineage_in(DirectoryStore(directory), restored, is_afresh)


def test_a_learner_that_is_killed_before_its_first_checkpoint_is_known_again(tmp_path):
    assert begun(tmp_path).at(500) == begun(tmp_path).at(0)
    assert begun(tmp_path).at(0).training


def test_one_whose_directory_is_lost_is_another(tmp_path):
    assert begun(tmp_path / "a").training != begun(tmp_path / "b").training


def test_it_resumes_from_what_it_has_saved_last(tmp_path):
    lineage = begun(tmp_path)
    lineage.saved(400)
    assert lineage.at(700) == Lineage(lineage.training, holds=400, resumes=400)


def test_a_checkpoint_before_the_newest_is_no_sign_of_loss(tmp_path):
    for step in (100, 200):
        (tmp_path / f"cp-{step}.json").write_text("{}")
    (tmp_path / "training.json").write_text('{"name": "0123abcd"}')
    assert begun(tmp_path, restored=100).at(100) == Lineage("0123abcd", holds=200, resumes=100)


def test_checkpoints_of_before_there_were_names_have_none(tmp_path):
    (tmp_path / "cp-100.json").write_text("{}")
    assert begun(tmp_path, restored=100).at(100) == Lineage("", 100, 100)


def test_what_saves_nothing_cannot_be_continued():
    lineage = lineage_in(None, 0, is_afresh=False)
    assert lineage.at(0) == Lineage(lineage.training, 0, 0)
    assert lineage.at(700) == Lineage(lineage.training, 700, 700)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"name": "../x"}', b'{"name": 5}', b"\xff"])
def test_a_name_that_cannot_be_read_is_replaced_with_a_warning(tmp_path, content, caplog):
    (tmp_path / "training.json").write_bytes(content)
    name = begun(tmp_path).training
    assert "cannot be read" in caplog.text
    assert begun(tmp_path).training == name != ""


class Sharing:
    """Of a learner of several: it takes the values that the parameter server has."""

    def __init__(self):
        self.taken = None

    def values(self):
        return {}

    def take(self, values):
        self.taken = values.vector


def test_learners_that_share_gradients_do_not_lose_theirs_to_an_empty_parameter_server(caplog):
    store = ParameterStore(np.zeros(2, np.float32), SGD(2, 0.0), lambda _: 1.0)
    service, learner = ParameterService(store, NullMetrics()), Sharing()
    with pytest.raises(ConfigurationError, match=r"its step 500,.*version 0.*--start-afresh"):
        connect_restored(learner, service, 500, is_afresh=False)
    assert learner.taken is None
    connect_restored(learner, service, 0, is_afresh=False)
    connect_restored(learner, service, 500, is_afresh=True)
    assert not caplog.records
    connect_restored(learner, service, 0, is_afresh=True)
    assert "--start-afresh has no effect" in caplog.text
    store.apply(np.ones(2, np.float32), 1)
    connect_restored(learner, service, 500, is_afresh=False)
    assert learner.taken.tolist() == [-1, -1]


def test_values_that_a_learner_pushes_by_itself_show_its_lineage_too(tmp_path):
    service = ParameterService(PublishedParameters(np.zeros(2, np.float32)), NullMetrics())
    own, other = MemoryBridge(service), MemoryBridge(service)
    own.lineage_at, other.lineage_at = begun(tmp_path / "a").at, begun(tmp_path / "b").at
    for iteration in (5, 1):  # it has started again
        own.push(NewValues(np.ones(2, np.float32), iteration), "candidate-3")
    with pytest.raises(NotContinued, match="step 5 of training"):
        other.push(NewValues(np.zeros(2, np.float32), 5), "candidate-3")
