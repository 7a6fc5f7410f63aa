"""Whoever publishes shows what it continues: nothing else replaces what was learnt."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from relaax.algorithm_base import DEFAULT, Lineage, NewValues
from relaax.errors import NotContinued
from relaax.parameters.published import PublishedParameters

INITIAL, TRAINED, RANDOM = (np.full(2, number, np.float32) for number in (0, 1, 2))

#: Of a learner that has published step 5,000, and has saved step 4,000.
OWN = Lineage("aaaa", holds=4000, resumes=4000)


@pytest.fixture(name="parameters", params=["running", "restarted"])
def _parameters(request):
    """What has trained values, in the process that took them or in the next one."""
    parameters = PublishedParameters(INITIAL)
    parameters.push(NewValues(TRAINED, 5000, "", OWN))
    parameters.push(NewValues(TRAINED, 5000, "", OWN), "other")
    if request.param == "running":
        return parameters
    restarted = PublishedParameters(INITIAL)
    restarted.restore(parameters.snapshot())
    return restarted


def values(parameters, policy=DEFAULT):
    return parameters.pull(policy=policy).vector.tolist()


@pytest.mark.parametrize("policy", [DEFAULT, "other"])
@pytest.mark.parametrize(
    ("shown", "iteration", "said"),
    [
        (Lineage("bbbb"), 0, "step 0 of training bbbb.*step 5,000 of training aaaa"),
        (Lineage("bbbb", 9000, 9000), 9000, "step 9,000 of training bbbb"),
        (Lineage("", 9000, 9000), 9000, "a training without a name"),
        (None, 6000, "a training without a name"),
        (Lineage("aaaa"), 0, "step 0 of training aaaa.*checkpoint of step 4,000 was saved"),
        (Lineage("aaaa", 3999, 3999), 3999, "newest checkpoint is of step 3,999"),
    ],
    ids=["lost", "foreign", "nameless", "silent", "emptied", "an old copy"],
)
def test_what_does_not_continue_the_training_is_refused(parameters, policy, shown, iteration, said):
    with pytest.raises(NotContinued, match=f"(?s){said}.*--start-afresh"):
        parameters.push(NewValues(RANDOM, iteration, "", shown), policy)
    assert values(parameters, policy) == TRAINED.tolist()
    parameters.push(NewValues(TRAINED, 5001, "", OWN), policy)  # its own learner goes on


@pytest.mark.parametrize("shown", [Lineage("bbbb", is_afresh=True)])
def test_start_afresh_replaces_it_and_says_so(parameters, shown, caplog):
    parameters.push(NewValues(RANDOM, 0, "", shown))
    assert values(parameters) == RANDOM.tolist()
    assert "step 5000 of training aaaa is replaced by step 0 of training bbbb" in caplog.text
    parameters.push(NewValues(RANDOM, 10, "", Lineage("bbbb")))
    with pytest.raises(NotContinued):
        parameters.push(NewValues(TRAINED, 5001, "", OWN))


@pytest.mark.parametrize(
    ("shown", "iteration"), [(OWN, 5001), (Lineage("bbbb"), 0), (Lineage("aaaa", 3999, 3999), 3999)]
)
def test_start_afresh_that_has_no_effect_is_said_once(parameters, shown, iteration, caplog):
    for step in (iteration, iteration + 1):
        parameters.push(NewValues(RANDOM, step, "", replace(shown, is_afresh=True)))
    lines = [line for line in caplog.messages if "--start-afresh has no effect" in line]
    assert len(lines) == (shown == OWN)


def test_start_afresh_where_nothing_is_published_has_no_effect(caplog):
    PublishedParameters(INITIAL).push(NewValues(RANDOM, 0, "", Lineage("aaaa", is_afresh=True)))
    assert "--start-afresh has no effect: there is nothing that training aaaa" in caplog.text


def test_a_learner_that_was_killed_goes_back_to_its_last_checkpoint(parameters, caplog):
    parameters.push(NewValues(RANDOM, 4000, "", OWN))
    assert values(parameters) == RANDOM.tolist()
    assert "goes on from step 4000, its last checkpoint: 1000 steps" in caplog.text
    caplog.clear()
    parameters.push(NewValues(TRAINED, 4500, "", OWN))
    assert not caplog.records


def test_a_learner_that_goes_back_on_purpose_may_be_killed_then(parameters):
    """``--restore`` begins with a checkpoint before the newest one, which is there all the same."""
    parameters.push(NewValues(RANDOM, 1000, "", Lineage("aaaa", holds=4000, resumes=1000)))
    parameters.push(NewValues(RANDOM, 1500, "", Lineage("aaaa", holds=1500, resumes=1500)))
    parameters.push(NewValues(RANDOM, 1500, "", Lineage("aaaa", holds=1500, resumes=1500)))


@pytest.mark.parametrize("shown", [None, Lineage()])
def test_one_that_shows_no_lineage_goes_forward_alone(shown):
    parameters = PublishedParameters(INITIAL)
    for step in (0, 100, 100):
        parameters.push(NewValues(TRAINED, step, "", shown))
    with pytest.raises(NotContinued, match=r"step 5 of a training without a name.*step 100 is"):
        parameters.push(NewValues(RANDOM, 5, "", shown))
    assert values(parameters) == TRAINED.tolist()


def test_one_of_before_there_were_names_may_go_back_to_its_checkpoint():
    parameters = PublishedParameters(INITIAL)
    parameters.push(NewValues(TRAINED, 100, "", Lineage("", holds=80, resumes=80)))
    parameters.push(NewValues(RANDOM, 80, "", Lineage("", holds=80, resumes=80)))
    assert values(parameters) == RANDOM.tolist()


def test_of_policies_beside_the_default_one_nothing_is_said(parameters, caplog):
    parameters.push(NewValues(RANDOM, 4000, "", OWN), "other")
    parameters.push(NewValues(RANDOM, 4000, "", OWN), "new")
    assert values(parameters, "other") == RANDOM.tolist()
    assert not caplog.records


def test_where_nothing_was_learnt_nothing_is_lost():
    parameters = PublishedParameters(INITIAL)
    parameters.push(NewValues(RANDOM, 0, "", Lineage("aaaa")))
    parameters.push(NewValues(TRAINED, 0, "", Lineage("bbbb")))
    assert values(parameters) == TRAINED.tolist()


def test_a_parameter_server_without_checkpoints_takes_the_learners_and_says_so(caplog):
    caplog.set_level(logging.WARNING)
    parameters = PublishedParameters(INITIAL)
    parameters.push(NewValues(TRAINED, 5000, "", OWN))
    assert values(parameters) == TRAINED.tolist()
    assert "goes on from its step 5000, and nothing of that is known here" in caplog.text


def test_both_without_checkpoints_begin_without_a_word(caplog):
    PublishedParameters(INITIAL).push(NewValues(RANDOM, 0, "", Lineage("aaaa")))
    assert not caplog.records
