"""The stages of a curriculum: when they move on, what counts for them, what outlives a process."""

import logging

import pytest
from clock import Clock
from parameter_databases import NAME, values
from served_worker import StoredMetrics

from relaax.algorithm_base import NullMetrics
from relaax.configuration.curriculum import Condition, Curriculum
from relaax.configuration.eval_rules import EvalRule
from relaax.errors import CheckpointError, ConfigurationError
from relaax.parameters.database import DatabaseRoot
from relaax.parameters.process.evaluation import VersionEvaluation
from relaax.parameters.stage import Stage
from relaax.telemetry.metrics import EPISODE_RETURN

TAG = "evaluation"
WINS = Condition(type_="SimpleBound", args={"field": "win_rate", "lower_limit": 0.6})


@pytest.fixture(name="database")
def _database(tmp_path):
    with DatabaseRoot(tmp_path).writer(NAME, "a test") as writer:
        yield writer


def evaluation_of(database, metrics=None, conditions=(WINS,), stages=("near", "middle", "far")):
    curriculum = Curriculum(
        type_="Linear", name="corridor", stages=list(stages), conditions=list(conditions)
    )
    rule = EvalRule(
        eval_sample_stream="eval", eval_games_per_version=2, curriculum_config=curriculum
    )
    evaluation = VersionEvaluation(database, {TAG: rule}, metrics or NullMetrics(), Clock())
    evaluation.advance()
    return evaluation


def play(evaluation, version, *win_rates, stage):
    for rate in win_rates:
        for name, y in {"win_rate": rate, EPISODE_RETURN: rate}.items():
            evaluation.note(f"eval/#{stage}/{name}", version, y)
    evaluation.advance()


def push(evaluation, database, version):
    database.push(values(version), version)
    evaluation.advance()


def test_a_stage_is_over_when_the_means_of_a_version_meet_all_conditions(database, capsys):
    metrics = StoredMetrics()
    returns = Condition(type_="SimpleBound", args={"field": "episode_return", "upper_limit": 0.9})
    evaluation = evaluation_of(database, metrics, [WINS, returns])
    for version, rates, stage in (
        (1, (0.5, 0.5), 0), (2, (1.0, 1.0), 0), (3, (0.5, 1.0), 1), (4, (0.0, 0.0), 1)
    ):  # fmt: skip
        push(evaluation, database, version)
        play(evaluation, version, *rates, stage=0)
        assert evaluation.stage() == Stage(stage, ("near", "middle", "far")[stage])
    assert capsys.readouterr().out.count("curriculum corridor: stage middle") == 1
    assert [x for name, y, x in metrics.values if (name, y) == (f"{TAG}/stage", 0)] == [1, 2, 3]


def test_an_episode_that_began_in_another_stage_does_not_count(database):
    evaluation = evaluation_of(database)
    push(evaluation, database, 1)
    play(evaluation, 1, 1.0, 1.0, stage=0)
    push(evaluation, database, 2)
    play(evaluation, 2, 1.0, 1.0, 1.0, stage=0)
    play(evaluation, 2, 1.0, stage=1)
    assert evaluation.stage() == Stage(1, "middle")
    play(evaluation, 2, 1.0, stage=1)
    assert evaluation.stage() == Stage(2, "far")


def test_an_episode_without_a_stage_does_not_count(database):
    evaluation = evaluation_of(database)
    push(evaluation, database, 1)
    for name in ("win_rate", EPISODE_RETURN) * 3:
        evaluation.note(f"eval/{name}", 1, 1.0)
    evaluation.advance()
    assert evaluation.stage() == Stage(0, "near")


def test_conditions_begin_anew_with_each_stage(database):
    still = Condition(type_="Converged", args={"value_field": "win_rate", "duration": 2})
    evaluation = evaluation_of(database, conditions=[still])
    stages = []
    for version in range(1, 8):
        push(evaluation, database, version)
        play(evaluation, version, 0.5, 0.5, stage=evaluation.stage().number)
        stages.append(evaluation.stage().number)
    assert stages == [0, 0, 1, 1, 1, 2, 2]


def test_the_last_stage_stays(database, capsys):
    evaluation = evaluation_of(database, stages=["only"])
    for version in (1, 2, 3):
        push(evaluation, database, version)
        play(evaluation, version, 1.0, 1.0, stage=0)
    assert evaluation.stage() == Stage(0, "only")
    assert capsys.readouterr().out.count("all stages are over") == 1


def test_the_stage_is_that_of_before_a_restart(database):
    first = evaluation_of(database)
    push(first, database, 1)
    play(first, 1, 1.0, 1.0, stage=0)
    again = evaluation_of(database)
    assert again.stage() == Stage(1, "middle")
    play(again, 1, 1.0, 1.0, stage=1)  # its episodes count anew, in the new stage
    assert again.stage() == Stage(2, "far")
    with pytest.raises(ConfigurationError, match="in the stage 'far' of the curriculum 'corridor'"):
        evaluation_of(database, stages=["near", "middle"])


def test_a_stage_that_is_not_stored_yet_is_not_begun(database, monkeypatch):
    evaluation = evaluation_of(database)
    push(evaluation, database, 1)
    store = type(database).set_stage

    def fail(*arguments):
        raise CheckpointError("the disk is full")

    monkeypatch.setattr(type(database), "set_stage", fail)
    play(evaluation, 1, 1.0, 1.0, stage=0)
    assert evaluation.stage() == Stage(0, "near")
    monkeypatch.setattr(type(database), "set_stage", store)
    evaluation.advance()
    assert evaluation.stage() == Stage(1, "middle")


def test_a_number_that_the_environment_does_not_give_is_named(database, caplog):
    kills = Condition(type_="SimpleBound", args={"field": "kills", "lower_limit": 1})
    evaluation = evaluation_of(database, conditions=[kills])
    push(evaluation, database, 1)
    with caplog.at_level(logging.WARNING):
        play(evaluation, 1, 1.0, 1.0, stage=0)
    assert "the stage 'near' cannot end: a condition is about 'kills'" in caplog.text


def test_a_policy_has_one_curriculum(database):
    curriculum = Curriculum(type_="Linear", name="corridor", conditions=[WINS])
    rules = {tag: EvalRule(curriculum_config=curriculum) for tag in ("one", "two")}
    with pytest.raises(ConfigurationError, match="two have a curriculum_config"):
        VersionEvaluation(database, rules, NullMetrics())
