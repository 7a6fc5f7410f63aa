"""Which versions stay: seed 002, "About tags" 4 to 6."""

import pytest
from parameter_databases import values

from relaax.checkpoints import DirectoryStore
from relaax.errors import ConfigurationError, NoSuchVersion, NotContinued
from relaax.parameters.database import DatabaseWriter, ParameterDatabase


def writer_in(directory, keep_untagged=10):
    return DatabaseWriter(DirectoryStore(directory), keep_untagged=keep_untagged)


def data_of(directory):
    return sorted(path.name.split(".")[0] for path in directory.glob("version-*"))


def test_the_newest_untagged_versions_stay_and_each_tagged_one(tmp_path):
    writer = writer_in(tmp_path)
    for version in range(30):
        writer.push(values(version), version, [f"at-{version}"] if version in (3, 25) else [])
    assert writer.gc() == [0, 1, 2, *range(4, 19)]
    assert writer.list_versions() == [3, *range(19, 30)]
    assert writer.gc() == []


def test_how_many_stay_is_a_parameter_and_the_latest_always_does(tmp_path):
    writer = writer_in(tmp_path, keep_untagged=1)
    for version in range(5):
        writer.push(values(version), version)
    assert writer.gc() == [0, 1, 2, 3]
    assert writer.get().number == 4
    with pytest.raises(ConfigurationError, match="keep_untagged must be 1 or more, is 0"):
        writer_in(tmp_path, keep_untagged=0)


def test_a_version_tagged_later_stays_until_its_last_tag_goes(tmp_path):
    writer = writer_in(tmp_path, keep_untagged=1)
    writer.push(values(1), 1)
    writer.tag(1, "evaluated")
    writer.tag("evaluated", "again")
    for version in (2, 3):
        writer.push(values(version), version)
    writer.untag("evaluated")
    assert writer.gc() == [2]
    writer.tag(3, "again")  # a tag that moves is one less, too
    writer.push(values(4), 4)
    assert writer.gc() == [1]
    with pytest.raises(NoSuchVersion, match="no version 1 in"):
        writer.get(1)


def test_the_data_of_outdated_versions_is_deleted_and_so_are_remains(tmp_path):
    writer = writer_in(tmp_path, keep_untagged=1)
    for version in range(3):
        writer.push(values(version), version)
    (tmp_path / "version-9.0123456789ab.safetensors").touch()
    writer.gc()
    assert data_of(tmp_path) == ["version-2"]


def test_a_number_that_was_deleted_is_not_pushed_again(tmp_path):
    writer = writer_in(tmp_path, keep_untagged=1)
    for version in range(3):
        writer.push(values(version), version)
    writer.gc()
    with pytest.raises(NotContinued, match="version 1 cannot follow version 2"):
        writer.push(values(1), 1)


class SlowStore(DirectoryStore):
    """Calls ``before_read`` once when a version is read, as if the reader were slow."""

    before_read = None

    def get(self, name):
        if name.startswith("version-") and self.before_read:
            before_read, self.before_read = self.before_read, None
            before_read()
        return super().get(name)


def test_a_reader_whose_version_goes_meanwhile_gets_the_one_in_its_place(tmp_path):
    writer = writer_in(tmp_path, keep_untagged=1)
    writer.push(values(1), 1)
    store = SlowStore(tmp_path, is_only_read=True)

    def replace_it():
        newest = writer.version_of() + 1
        writer.push(values(newest), newest)
        writer.gc()

    store.before_read = replace_it
    assert ParameterDatabase(store).get().number == 2
    store.before_read = replace_it
    with pytest.raises(NoSuchVersion, match="no version 2 in"):
        ParameterDatabase(store).get(2)


class Killed(BaseException):
    pass


class KilledAt(DirectoryStore):
    """A store whose process dies before its n-th change."""

    changes = 10**9

    def _change(self):
        if self.changes == 0:
            raise Killed
        self.changes -= 1

    def put(self, name, data):
        self._change()
        super().put(name, data)

    def delete(self, name):
        self._change()
        super().delete(name)


@pytest.mark.parametrize("action", ["push", "gc"])
def test_a_kill_between_any_two_changes_leaves_a_whole_database(tmp_path, action):
    for changes in range(10):
        directory = tmp_path / str(changes)
        store = KilledAt(directory)
        writer = DatabaseWriter(store, keep_untagged=1)
        for version in range(3):
            writer.push(values(version), version, ["kept"] if version == 1 else [])
        store.changes = changes
        try:
            writer.push(values(3), 3, ["new"]) if action == "push" else writer.gc()
        except Killed:
            pass
        else:
            break
        reader = ParameterDatabase(DirectoryStore(directory, is_only_read=True))
        for version in reader.list_versions():
            assert reader.get(version).values.global_t == 10 * version
        assert reader.list_tags() == {"latest": 2, "kept": 1}
        successor = writer_in(directory, keep_untagged=1)
        successor.push(values(3), 3)
        successor.gc()
        assert successor.list_versions() == [1, 3]
        assert data_of(directory) == ["version-1", "version-3"]
    assert changes > 1
