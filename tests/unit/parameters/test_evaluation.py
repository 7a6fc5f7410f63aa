"""One version after another is evaluated: which episodes count, and when the tag moves."""

import pytest
from clock import Clock
from parameter_databases import NAME, values
from served_worker import StoredMetrics

from relaax.algorithm_base import NullMetrics
from relaax.configuration.eval_rules import EvalRule
from relaax.errors import ConfigurationError
from relaax.parameters.database import DatabaseRoot, Type
from relaax.parameters.process.evaluation import VersionEvaluation
from relaax.telemetry.metrics import EPISODE_LENGTH, EPISODE_RETURN

TAG = "my_evaluation"
STREAM = "eval_default"


@pytest.fixture(name="database")
def _database(tmp_path):
    with DatabaseRoot(tmp_path, Type.METADATA).writer(NAME, "a test") as writer:
        yield writer


def evaluation_of(database, metrics=None, clock=None, **rule):
    rule = EvalRule(**{"eval_sample_stream": STREAM, "eval_games_per_version": 3, **rule})
    metrics = NullMetrics() if metrics is None else metrics
    return VersionEvaluation(database, {TAG: rule}, metrics, clock or Clock())


def play(evaluation, version, *returns, stream=STREAM, **numbers):
    """Report an episode with each of these returns, as an evaluating actor does."""
    for each in returns:
        for name, y in {EPISODE_LENGTH: 10, **numbers, EPISODE_RETURN: each}.items():
            evaluation.note(f"{stream}/{name}" if stream else name, version, y)
    evaluation.advance()


def push(database, *versions, tags=("kept",)):
    for version in versions:
        database.push(values(version), version, [f"{tag}{version}" for tag in tags])


def test_the_tag_stays_until_enough_episodes_were_played_and_moves_to_the_newest_version(database):
    metrics = StoredMetrics()
    evaluation = evaluation_of(database, metrics)
    evaluation.advance()
    assert not database.has_tag(TAG)
    push(database, 5)
    evaluation.advance()
    push(database, 7, 9)
    play(evaluation, 5, 10.0, 20.0)
    assert database.version_of(TAG) == 5
    play(evaluation, 5, 60.0)
    assert database.version_of(TAG) == 9
    assert (f"{TAG}/{EPISODE_RETURN}", 30.0, 5) in metrics.values
    assert (f"{TAG}/{EPISODE_LENGTH}", 10.0, 5) in metrics.values


def test_a_version_that_is_the_newest_one_is_evaluated_once(database):
    metrics = StoredMetrics()
    evaluation = evaluation_of(database, metrics)
    push(database, 5)
    evaluation.advance()
    play(evaluation, 5, *[1.0] * 7)
    assert len(metrics.values) == 2
    push(database, 6)
    evaluation.advance()
    assert database.version_of(TAG) == 6


@pytest.mark.parametrize(("version", "stream"), [(4, STREAM), (6, STREAM), (5, "other"), (5, "")])
def test_episodes_of_another_version_or_stream_do_not_count(database, version, stream):
    push(database, 4, 5)
    evaluation = evaluation_of(database)
    evaluation.advance()
    push(database, 6)
    play(evaluation, version, 1.0, 1.0, 1.0, stream=stream)
    play(evaluation, 5, 1.0, 1.0)
    assert database.version_of(TAG) == 5
    play(evaluation, 5, 1.0)
    assert database.version_of(TAG) == 6


def test_a_version_is_evaluated_for_some_time_at_least(database):
    clock = Clock(0.0)
    push(database, 5)
    evaluation = evaluation_of(database, clock=clock, eval_time_per_version_seconds=60)
    evaluation.advance()
    push(database, 6)
    clock.now = 59.0
    play(evaluation, 5, 1.0, 1.0, 1.0)
    assert database.version_of(TAG) == 5
    clock.now = 60.0
    evaluation.advance()
    assert database.version_of(TAG) == 6


def test_an_evaluation_goes_on_with_its_version_after_a_restart(database):
    push(database, 5)
    evaluation = evaluation_of(database)
    evaluation.advance()
    push(database, 6)
    play(evaluation, 5, 1.0, 1.0)
    again = evaluation_of(database)
    play(again, 5, 1.0, 1.0)
    assert database.version_of(TAG) == 5
    play(again, 5, 1.0)
    assert database.version_of(TAG) == 6


def test_a_version_with_a_tag_comes_before_the_latest_one(database):
    push(database, 5)
    evaluation = evaluation_of(database)
    push(database, 8, tags=())
    evaluation.advance()
    assert database.version_of(TAG) == 5
    play(evaluation, 5, 1.0, 1.0, 1.0)
    assert database.version_of(TAG) == 8


def test_another_tag_may_be_the_target(database):
    push(database, 5, 6)
    evaluation = evaluation_of(database, eval_target_tag="best")
    evaluation.advance()
    assert not database.has_tag(TAG)
    database.tag(5, "best")
    evaluation.advance()
    assert database.version_of(TAG) == 5


def test_metadata_are_the_means_of_all_episodes_of_a_version(database):
    """Of any stream, and without a manager."""
    push(database, 5, 6)
    push(database, 7, tags=())
    evaluation = VersionEvaluation(database, {}, NullMetrics(), Clock())
    play(evaluation, 5, 10.0, 20.0, win_rate=1.0)
    play(evaluation, 5, 60.0, stream="", win_rate=0.0)
    play(evaluation, 7, 1.0)
    found = database.metadata_of(5)
    assert found.count == 3
    assert found.md == {
        EPISODE_RETURN: pytest.approx(30.0),
        EPISODE_LENGTH: pytest.approx(10.0),
        "win_rate": pytest.approx(2 / 3),
    }
    assert database.metadata_of(6).count == 0
    assert database.metadata_of(7) is None


def test_an_episode_counts_when_its_return_has_come(database):
    push(database, 5)
    evaluation = VersionEvaluation(database, {}, NullMetrics(), Clock())
    evaluation.note(EPISODE_LENGTH, 5, 10.0)
    evaluation.advance()
    assert database.metadata_of(5).count == 0
    play(evaluation, 5, 1.0)
    evaluation.note(EPISODE_RETURN, 5, 3.0)
    evaluation.advance()
    assert database.metadata_of(5).count == 2
    assert database.metadata_of(5).md == {EPISODE_RETURN: 2.0, EPISODE_LENGTH: 10.0}


def test_an_environment_that_changes_its_numbers_leaves_the_metadata(database, caplog):
    push(database, 5)
    evaluation = VersionEvaluation(database, {}, NullMetrics(), Clock())
    play(evaluation, 5, 1.0)
    play(evaluation, 5, 3.0, win_rate=1.0)
    assert database.metadata_of(5).count == 1
    assert "they must stay the same" in caplog.text
    push(database, 6)
    evaluation.note("win_rate", 6, 1.0)  # of the first of two episodes that come together
    for y in (1.0, 3.0):
        evaluation.note(EPISODE_RETURN, 6, y)
    evaluation.advance()
    assert database.metadata_of(6).count == 0
    assert "only some episodes of version 6 have all of episode_return, win_rate" in caplog.text


@pytest.mark.parametrize("tag", ["latest", "7", "a/b"])
def test_a_tag_that_cannot_be_set_is_refused_at_the_start(database, tag):
    with pytest.raises(ConfigurationError):
        VersionEvaluation(database, {tag: EvalRule()}, NullMetrics())
