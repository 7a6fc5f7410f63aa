"""What is learnt is pushed to a parameter database, and pulled by identifier."""

from contextlib import closing
from datetime import datetime, timedelta

import numpy as np
import pytest
from clock import Clock
from parameter_databases import NAME
from processes import free_port
from served_worker import StoredMetrics

from relaax.algorithm_base import Gradient, NewValues, NullMetrics
from relaax.errors import (
    BridgeError,
    CheckpointError,
    ConfigurationError,
    NoSuchVersion,
    NotContinued,
    NotThereYet,
)
from relaax.parameters import Bridge, BridgeControl
from relaax.parameters.database import LATEST, DatabaseRoot, Type
from relaax.parameters.optimizers import SGD
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.process.versions import StoredVersions, TagRule, VersionPusher
from relaax.parameters.published import PublishedParameters
from relaax.parameters.training_watch import wait_for_version
from relaax.processes.identifiers import identifier_of, text_of
from relaax.telemetry.metrics import (
    EPISODE_AFTER,
    EPISODE_RETURN,
    EVALUATION_REWARD_OF,
    store_evaluated,
)


@pytest.fixture(name="root")
def _root(tmp_path):
    return DatabaseRoot(tmp_path / "database", Type.METADATA)


@pytest.fixture(name="database")
def _database(root):
    with root.writer(NAME, "a test") as writer:
        yield writer


@pytest.fixture(name="published")
def _published():
    return PublishedParameters(np.zeros(3, np.float32))


@pytest.fixture(name="bridge")
def _bridge(published, database):
    url = f"127.0.0.1:{free_port()}"
    service = ParameterService(published, NullMetrics())
    control = BridgeControl(versions=StoredVersions(database))
    port = control.start_parameter_server(url, service)
    with closing(Bridge(url)) as bridge:
        yield bridge
    port.stop(0)


def publish(published, iteration):
    published.push(NewValues(np.full(3, iteration, np.float32), iteration))


def pusher_of(published, database, seconds=None, steps=None, initial=False):
    """A pusher, and its clock, which tags go by, too."""
    clock = Clock(0.0)

    def now():
        return datetime(2026, 11, 29, 1, 31) + timedelta(seconds=clock.now)

    rule = TagRule(seconds, steps, initial)
    return VersionPusher(published, database, rule, clock=clock, now=now), clock


def test_the_newest_version_is_pushed_by_the_learners_count(published, database):
    pusher, _ = pusher_of(published, database)
    pusher.push()
    assert database.list_versions() == []
    for iteration in (5, 9):
        publish(published, iteration)
    pusher.push()
    pusher.push()
    assert database.list_tags() == {LATEST: 9}
    np.testing.assert_array_equal(database.get(9).values.vector, [9, 9, 9])


def test_what_a_training_begins_with_can_be_version_0(published, database):
    pusher, _ = pusher_of(published, database, initial=True)
    pusher.push()
    assert database.list_tags() == {LATEST: 0, "20261129_013100": 0}
    assert database.metadata_of(0).count == 0
    publish(published, 5)
    pusher.push()
    assert database.list_tags() == {LATEST: 5, "20261129_013100": 0}


def test_values_that_gradients_move_have_the_number_of_their_updates(database):
    store = ParameterStore(np.zeros(3, np.float32), SGD(3, 0.0), lambda step: 1.0)
    pusher, _ = pusher_of(store, database)
    for _ in range(2):
        store.push(Gradient(np.ones(3, np.float32), steps=10))
    pusher.push()
    found = database.get()
    assert (found.number, found.values.global_t) == (2, 20)
    np.testing.assert_array_equal(found.values.vector, [-2, -2, -2])


def test_a_version_is_tagged_with_the_time_after_so_many_seconds(published, database):
    pusher, clock = pusher_of(published, database, seconds=60)
    for clock.now, iteration in ((59, 1), (60, 2), (61, 3), (121, 4)):
        publish(published, iteration)
        pusher.push()
    assert database.list_tags() == {LATEST: 4, "20261129_013200": 2, "20261129_013301": 4}


def test_a_version_is_tagged_after_so_many_updates_also_after_a_restart(published, database):
    pusher, clock = pusher_of(published, database, steps=10)
    for clock.now, iteration in ((1, 9), (2, 13), (3, 22)):
        publish(published, iteration)
        pusher.push()
    pusher, clock = pusher_of(published, database, steps=10)
    for clock.now, iteration in ((4, 22), (5, 23)):
        publish(published, iteration)
        pusher.push()
    assert list(database.list_tags().values()) == [23, 13, 23]


def test_two_pushes_within_a_second_have_no_common_tag(published, database):
    pusher, clock = pusher_of(published, database, steps=1)
    for clock.now, iteration in ((1.1, 1), (1.9, 2), (2, 3)):
        publish(published, iteration)
        pusher.push()
    assert database.list_tags() == {LATEST: 3, "20261129_013101": 1, "20261129_013102": 3}


def test_a_training_that_goes_back_pushes_when_it_has_passed_the_latest_version(
    published, database
):
    publish(published, 9)
    pusher_of(published, database)[0].push()
    restored = PublishedParameters(np.zeros(3, np.float32))
    pusher, _ = pusher_of(restored, database)
    publish(restored, 8)
    with pytest.raises(NotContinued):
        pusher.push()
    publish(restored, 10)
    pusher.push()
    assert database.list_versions() == [9, 10]


def test_the_last_version_is_pushed_at_the_end(published, database):
    pusher, _ = pusher_of(published, database)
    pusher.begin()
    publish(published, 7)
    pusher.close()
    assert database.version_of() == 7


def test_a_bridge_pulls_the_version_that_it_follows(published, database, bridge):
    pusher, _ = pusher_of(published, database, steps=2)
    for iteration in (1, 2, 3):
        publish(published, iteration)
        pusher.push()
    (tag,) = set(database.list_tags()) - {LATEST}
    for identifier in (tag, "2"):
        bridge.follow(identifier)
        found = bridge.pull()
        assert (found.version.number, found.info.iteration) == (2, 2)
        np.testing.assert_array_equal(found.vector, [2, 2, 2])
        again = bridge.pull(found.version)
        assert (again.vector, again.info) == (None, found.info)


def test_a_database_that_is_away_is_waited_for(published, database, bridge, monkeypatch):
    pusher, _ = pusher_of(published, database)
    publish(published, 1)
    pusher.push()
    choose, failures = database.version_of, [CheckpointError("the server does not answer")]

    def version_of(identifier):
        if failures:
            raise failures.pop()
        return choose(identifier)

    monkeypatch.setattr(database, "version_of", version_of)
    bridge.follow(LATEST)
    assert bridge.pull().version.number == 1
    assert failures == []


def test_a_query_draws_anew_at_each_pull(database, published, bridge):
    pusher, clock = pusher_of(published, database, steps=1)
    for iteration in range(1, 5):
        clock.now = iteration
        publish(published, iteration)
        pusher.push()
    bridge.follow(text_of({"$match": {"version": {"$gt": 2}}}))
    assert {bridge.pull().version.number for _ in range(40)} == {3, 4}


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ('{"match": {}}', "did you forget the dollar sign"),
        ('{"$match": {"return": 1}}', "did you forget 'md.' before 'return'"),
        ('{"$match": {"md.wins": 1}}', "there is no field 'md.wins'; fields are"),
        ('{"$match": ', "is no JSON"),
    ],
)
def test_a_wrong_query_is_refused_with_the_databases_hint(published, database, bridge, query, hint):
    pusher, _ = pusher_of(published, database, steps=1)
    publish(published, 1)
    pusher.push()
    database.update_metadata(1, {"return": 2.0})
    bridge.follow(query)
    with pytest.raises(BridgeError, match=hint):
        bridge.pull()
    with pytest.raises(ConfigurationError, match=hint):
        wait_for_version(bridge, lambda: False)


def test_a_tag_that_is_not_there_yet_is_waited_for(published, database, bridge):
    bridge.follow("best")
    with pytest.raises(NotThereYet, match=r"no version in .* has the tag 'best'"):
        bridge.pull()
    pusher, _ = pusher_of(published, database)
    publish(published, 4)
    pusher.push()

    def tags():
        database.tag(LATEST, "best")
        return False

    assert wait_for_version(bridge, tags)
    assert not wait_for_version(bridge, lambda: True)


def test_a_score_of_a_followed_version_is_one_of_the_learners_step(published, database):
    url, control = f"127.0.0.1:{free_port()}", BridgeControl(versions=StoredVersions(database))
    service = ParameterService(published, NullMetrics())
    port = control.start_parameter_server(url, service)
    publish(published, 30)
    bridge = Bridge(url)
    bridge.follow("20")
    bridge.metrics().scalar(EVALUATION_REWARD_OF, 5.0, 20)
    bridge.close()
    assert service.evaluations().scores == [(20, 5.0)]
    port.stop(0)


@pytest.mark.parametrize(("identifier", "version"), [(None, 30), ("20", 20)])
def test_numbers_of_an_episode_are_those_of_a_version_and_a_stream(
    published, database, identifier, version
):
    url, control = f"127.0.0.1:{free_port()}", BridgeControl(versions=StoredVersions(database))
    stored = StoredMetrics()
    port = control.start_parameter_server(url, ParameterService(published, stored))
    publish(published, 30)
    bridge = Bridge(url)
    bridge.report_to("eval_default")
    played = 1
    if identifier is not None:
        bridge.follow(identifier)
        played = 20
    store_evaluated(bridge.metrics(), {EPISODE_RETURN: 5.0}, played, by_learner=False)
    bridge.close()
    assert (f"{EPISODE_AFTER}eval_default/{EPISODE_RETURN}", 5.0, version) in stored.values
    port.stop(0)


def test_a_parameter_server_without_a_database_refuses_identifiers(published):
    url = f"127.0.0.1:{free_port()}"
    port = BridgeControl().start_parameter_server(url, ParameterService(published, NullMetrics()))
    with closing(Bridge(url)) as bridge:
        bridge.follow("7")
        with pytest.raises(BridgeError, match="give it --database-dir"):
            bridge.pull()
    port.stop(0)


def test_operators_see_versions_tags_and_metadata(published, database):
    pusher, clock = pusher_of(published, database, steps=2)
    for clock.now, iteration in ((1, 1), (2, 2)):
        publish(published, iteration)
        pusher.push()
    database.update_metadata(2, {"return": 2.0}, episodes=3)
    versions = StoredVersions(database)
    assert versions.shown("versions") == [1, 2]
    assert versions.shown("tags") == {LATEST: 2, "20261129_013102": 2}
    assert versions.shown("versions/1") == {"version": 1, "tags": [], "metadata": None}
    found = versions.shown(f"versions/{LATEST}")
    assert found["tags"] == [LATEST, "20261129_013102"]
    assert (found["metadata"]["md"], found["metadata"]["count"]) == ({"return": 2.0}, 3)
    for path in ("", "versions/9", "values"):
        with pytest.raises(NoSuchVersion):
            versions.shown(path)


@pytest.mark.parametrize("identifier", [7, "20261129_0131", {"$match": {}}, [{"$limit": 1}]])
def test_an_identifier_is_read_from_its_text(identifier):
    assert identifier_of(text_of(identifier)) == identifier


def test_a_query_that_is_no_json_is_named():
    with pytest.raises(ConfigurationError, match="is no JSON"):
        identifier_of("[{")
