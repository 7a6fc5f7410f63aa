"""Versions of a policy are kept while it is learnt, and played by those that name them."""

import pytest
from processes import SMALL_PPO, Training, wait_for

from relaax.parameters import Bridge
from relaax.parameters.database import LATEST, DatabaseName, DatabaseRoot, ParameterDatabase

pytestmark = pytest.mark.integration

NAME = DatabaseName("cartpole", "one", "default")


@pytest.fixture(name="database")
def _database(training: Training) -> ParameterDatabase:
    """The database of a training that tags each tenth version, or a few more."""
    place = training.directory / "database"
    options = {"database-dir": str(place), "database-name": "/".join(NAME)}
    training.configure(SMALL_PPO, {**options, "push-frequency-steps": 10})
    training.start_parameter_server()
    return DatabaseRoot(place).reader(NAME)


def tags_of(database: ParameterDatabase) -> dict[str, int]:
    return {tag: version for tag, version in database.list_tags().items() if tag != LATEST}


def test_an_evaluating_actor_plays_a_tagged_version_while_the_training_goes_on(
    training: Training, database: ParameterDatabase, bridge: Bridge
):
    training.start_learner()
    training.start_actors(1)
    tag, version = wait_for(lambda: list(tags_of(database).items()), "a tagged version")[0]
    wait_for(lambda: database.version_of() > version, "a later version")
    flags = ("--mode", "eval_deterministic", "--episodes", "3", "--policy-identifier", tag)
    assert training.start_actors(1, *flags).wait() == 0
    wait_for(lambda: bridge.evaluations().count == 3, "three evaluations")
    assert {iteration for iteration, _ in bridge.evaluations().scores} == {version}
    assert bridge.pull().info.iteration > version
