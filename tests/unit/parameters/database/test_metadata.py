"""Metadata of versions: seed 002, "Metadata Parameter Database" and "About tags" 5 and 6."""

from contextlib import closing

import pytest
from clock import Clock
from mongodb import mongodb_server
from parameter_databases import NAME, values

from relaax.checkpoints import DirectoryStore
from relaax.configuration import S3Location
from relaax.errors import CheckpointError, ConfigurationError, NoSuchVersion
from relaax.parameters.database import (
    DatabaseRoot,
    DatabaseWriter,
    Metadata,
    MongoMetadata,
    SqliteMetadata,
    Type,
)

DAY_S = 86400.0
ALL = {"$match": {}}


@pytest.fixture(name="mongodb_url", scope="module")
def _mongodb_url(tmp_path_factory):
    with mongodb_server(tmp_path_factory.mktemp("mongodb")) as url:
        yield url


@pytest.fixture(name="store", params=["SQLite", "MongoDB"])
def _store(request, tmp_path):
    if request.param == "SQLite":
        yield SqliteMetadata(tmp_path / "metadata.sqlite")
        return
    trial = str(abs(hash(tmp_path)))
    with closing(
        MongoMetadata(request.getfixturevalue("mongodb_url"), NAME._replace(trial=trial))
    ) as store:
        yield store


@pytest.fixture(name="clock")
def _clock():
    return Clock(1000.0)


@pytest.fixture(name="writer")
def _writer(store, tmp_path, clock):
    metadata = Metadata(store, clock=clock)
    return DatabaseWriter(DirectoryStore(tmp_path), metadata, keep_untagged=1, clock=clock)


def test_a_version_that_is_pushed_with_a_tag_has_metadata_and_one_tagged_later_has_none(writer):
    writer.push(values(1), 1, ["first"])
    writer.push(values(2), 2)
    writer.tag(2, "later")
    writer.push(values(2), 2, ["again"])  # a repeated call
    assert {writer.version_of(ALL) for _ in range(5)} == {1}
    assert writer.metadata_of(2) is None
    with pytest.raises(NoSuchVersion, match="version 2 has no metadata: it was pushed without a"):
        writer.update_metadata(2, {"win_rate": 0.5})
    assert [writer.get(identifier).number for identifier in (2, "later")] == [2, 2]


def test_updates_are_running_means_with_a_count(writer, clock):
    writer.push(values(1), 1, ["first"])
    clock.now = 1010.0
    for win_rate in (1.0, 0.0, 0.5):
        writer.update_metadata(1, {"win_rate": win_rate, "length": 10.0})
    writer.update_metadata(1, {"win_rate": 1.0, "length": 40.0}, episodes=3)
    found = writer.metadata_of(1)
    assert (found.count, found.time_created, found.last_updated) == (6, 1000.0, 1010.0)
    assert found.md == {"win_rate": pytest.approx(0.75), "length": pytest.approx(25.0)}
    assert writer.version_of({"$match": {"md.win_rate": {"$gt": 0.7}}}) == 1


def test_the_first_means_can_be_pushed(writer):
    writer.push(values(1), 1, ["first"], {"win_rate": 0.5})
    writer.update_metadata(1, {"win_rate": 1.0})
    assert writer.metadata_of(1).md == {"win_rate": 0.75}
    with pytest.raises(ConfigurationError, match="version 2 cannot have metadata: they need a tag"):
        writer.push(values(2), 2, metadata={"win_rate": 0.5})


@pytest.mark.parametrize(
    ("means", "message"),
    [
        ({"wins": 1.0}, "metadata of version 1 are length, win_rate, and new ones are wins: they"),
        ({"win_rate": float("nan"), "length": 1.0}, "'win_rate' is nan: not finite"),
        ({"a.b": 1.0}, "has no dot and no \\$ first, is 'a.b'"),
    ],
)
def test_other_names_and_values_that_are_no_numbers_are_refused(writer, means, message):
    writer.push(values(1), 1, ["first"], {"win_rate": 1.0, "length": 1.0})
    with pytest.raises(ConfigurationError, match=message):
        writer.update_metadata(1, means)
    assert writer.metadata_of(1).count == 1


def test_metadata_expire_three_days_after_the_last_update(writer, store, clock):
    for version in (1, 2):
        writer.push(values(version), version, [f"at-{version}"])
    clock.now += 2 * DAY_S
    writer.update_metadata(2, {"win_rate": 1.0})
    clock.now += DAY_S
    assert {writer.version_of(ALL) for _ in range(5)} == {2}
    assert writer.metadata_of(1) is None
    with pytest.raises(NoSuchVersion, match="3 days after"):
        writer.update_metadata(1, {"win_rate": 1.0})
    writer.gc()
    assert store.read(1) is None
    assert writer.get("at-1").number == 1  # the version itself stays
    assert Metadata(store, expire_days=0.5, clock=clock).of(2) is None


def test_metadata_go_with_their_version(writer, store):
    writer.push(values(1), 1, ["first"])
    for version in (2, 3):
        writer.push(values(version), version)
    writer.untag("first")
    assert writer.gc() == [1, 2]
    assert store.read(1) is None


def test_metadata_of_a_version_that_a_killed_writer_did_not_finish_go(writer, store, tmp_path):
    writer.push(values(1), 1, ["first"])
    metadata = Metadata(store, clock=Clock(1000.0))
    metadata.set(metadata.first(2, None))
    assert writer.version_of(ALL) == 1
    successor = DatabaseWriter(DirectoryStore(tmp_path), metadata)
    assert store.read(2) is None
    assert successor.version_of(ALL) == 1


class TestTypes:
    def test_a_mixture_is_refused_whoever_opens_it(self, tmp_path, mongodb_url):
        plain, with_metadata = DatabaseRoot(tmp_path), DatabaseRoot(tmp_path, Type.METADATA)
        in_mongodb = DatabaseRoot(tmp_path, Type.METADATA, mongodb=mongodb_url)
        other = NAME._replace(policy="other")
        for root, name in ((plain, NAME), (with_metadata, other)):
            with root.writer(name, "the trainer") as writer:
                writer.push(values(1), 1)
        said = {
            (plain, other): r"with metadata in SQLite \(Type\.METADATA\), .* without metadata",
            (
                with_metadata,
                NAME,
            ): r"without metadata \(Type\.FILESYSTEM\), .* with metadata in SQL",
            (in_mongodb, other): r"with metadata in SQLite .* with metadata in MongoDB",
        }
        for (root, name), message in said.items():
            with pytest.raises(ConfigurationError, match=message), root.writer(name, "a"):
                pass
            with (
                closing(root.reader(name)) as reader,
                pytest.raises(ConfigurationError, match=message),
            ):
                reader.get()

    def test_without_metadata_no_query_is_answered_and_nothing_updated(self, tmp_path):
        with DatabaseRoot(tmp_path).writer(NAME, "the trainer") as writer:
            writer.push(values(1), 1, ["first"])
            for use in (
                lambda: writer.get(ALL),
                lambda: writer.update_metadata(1, {"win_rate": 1.0}),
                lambda: writer.push(values(2), 2, ["second"], {"win_rate": 1.0}),
            ):
                with pytest.raises(ConfigurationError, match="metadata"):
                    use()
            assert writer.list_versions() == [1]

    def test_a_reader_queries_and_a_clone_has_the_metadata(self, tmp_path):
        root = DatabaseRoot(tmp_path, Type.METADATA)
        clone = NAME._replace(trial="trial-2")
        with root.writer(NAME, "the trainer") as writer:
            writer.push(values(1), 1, ["first"], {"win_rate": 0.5})
            writer.push(values(2), 2, ["second"], {"win_rate": 0.9})
        with root.writer(clone, "another") as other:
            other.clone(root.reader(NAME))
        reader = root.reader(clone)
        assert reader.version_of({"$match": {"md.win_rate": {"$gt": 0.8}}}) == 2
        assert reader.metadata_of(1) == root.reader(NAME).metadata_of(1)
        with (
            DatabaseRoot(tmp_path).writer(clone._replace(trial="trial-3"), "a third") as plain,
            pytest.raises(ConfigurationError, match=r"only one of .* has metadata"),
        ):
            plain.clone(root.reader(NAME))

    def test_a_mongodb_goes_with_metadata_and_metadata_beside_s3_go_with_a_mongodb(self):
        with pytest.raises(ConfigurationError, match="metadata cannot be kept in S3"):
            DatabaseRoot(S3Location("bucket", "key"), Type.METADATA)
        with pytest.raises(ConfigurationError, match=r"no effect without Type\.METADATA"):
            DatabaseRoot(S3Location("bucket", "key"), mongodb="mongodb://localhost")


def test_a_store_that_cannot_be_used_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=f"cannot use the metadata in {tmp_path}/a/b"):
        SqliteMetadata(tmp_path / "a" / "b")
    with pytest.raises(ConfigurationError, match="the URL of the MongoDB cannot be used"):
        MongoMetadata("http://localhost", NAME)


def test_numbers_are_set_beside_the_means_of_episodes(writer, clock):
    writer.push(values(1), 1, ["first"])
    writer.update_metadata(1, {"episode_return": 2.0}, 3)
    writer.set_numbers({1: {"pfsp": 0.25, "elo": 1000.0}})
    clock.now += 5
    writer.update_metadata(1, {"episode_return": 6.0}, 1)
    writer.set_numbers({1: {"pfsp": 0.5}})
    found = writer.metadata_of(1)
    assert found.md == {"episode_return": 3.0, "pfsp": 0.5, "elo": 1000.0}
    assert (found.count, found.last_updated) == (4, 1005.0)
    assert writer.version_of({"$match": {"md.pfsp": {"$gte": 0.5}}}) == 1
    with pytest.raises(ConfigurationError, match="episode_return of version 1: a mean"):
        writer.set_numbers({1: {"episode_return": 1.0}})
    with pytest.raises(ConfigurationError, match="must stay the same"):
        writer.update_metadata(1, {"episode_return": 1.0, "pfsp": 1.0}, 1)


def test_a_version_that_is_tagged_later_gets_metadata_with_numbers(writer):
    writer.push(values(1), 1)
    writer.tag(1, "later")
    writer.set_numbers({1: {"psro": 0.5}})
    assert writer.version_of([{"$match": {}}, {"$draw": "md.psro"}]) == 1
    with pytest.raises(NoSuchVersion, match="no version 2"):
        writer.set_numbers({1: {"psro": 0.7}, 2: {"psro": 0.5}})
    assert writer.metadata_of(1).md == {"psro": 0.5}
