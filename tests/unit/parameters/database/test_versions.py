"""Versions and tags: seed 002, "About tags"."""

import threading

import numpy as np
import pytest
from clock import Clock
from parameter_databases import values

from relaax.checkpoints import DirectoryStore
from relaax.errors import ConfigurationError, DamagedCheckpoint, NoSuchVersion, NotContinued
from relaax.parameters.database import DatabaseWriter, ParameterDatabase, PolicyValues


@pytest.fixture(name="writer")
def _writer(tmp_path):
    return DatabaseWriter(DirectoryStore(tmp_path), clock=Clock(1000.0))


@pytest.fixture(name="reader")
def _reader(writer, tmp_path):
    return ParameterDatabase(DirectoryStore(tmp_path, is_only_read=True))


def test_a_version_is_read_as_it_was_pushed(writer, reader):
    writer.push(values(7), np.int64(7))
    for database in (writer, reader):
        found = database.get(7)
        assert (found.number, found.pushed_at, found.values.global_t) == (7, 1000.0, 70)
        np.testing.assert_array_equal(found.values.vector, values(7).vector)
        np.testing.assert_array_equal(found.values.statistics, np.ones(2))


def test_latest_moves_with_each_push_with_a_tag_or_without(writer, reader):
    writer.push(values(1), 1)
    assert reader.get().number == 1
    writer.push(values(2), 2, ["good"])
    assert reader.get().number == 2
    writer.push(values(3), 3)
    assert reader.get("latest").number == 3
    assert reader.list_tags() == {"latest": 3, "good": 2}
    assert reader.list_versions() == [1, 2, 3]


def test_a_tag_is_set_moved_and_removed(writer, reader):
    for number in (1, 2):
        writer.push(values(number), number)
    assert writer.tag("latest", "evaluated") == 2
    assert writer.tag(1, "evaluated") == 1
    assert reader.get("evaluated").number == reader.version_of("evaluated") == 1
    assert reader.has_tag("evaluated")
    writer.untag("evaluated")
    assert not reader.has_tag("evaluated")
    with pytest.raises(NoSuchVersion, match="'evaluated'"):
        writer.untag("evaluated")


@pytest.mark.parametrize("tag", ["latest", "12", "", "../x", "a b", "x" * 65])
def test_some_tags_cannot_be_set(writer, tag):
    writer.push(values(1), 1)
    for change in (
        lambda: writer.push(values(2), 2, [tag]),
        lambda: writer.tag(1, tag),
        lambda: writer.untag(tag),
    ):
        with pytest.raises(ConfigurationError, match="tag"):
            change()
    assert writer.list_tags() == {"latest": 1}


def test_other_values_for_a_version_are_refused_and_the_same_are_a_repeated_call(writer, reader):
    writer.push(values(1), 1)
    writer.push(values(1), 1, ["tagged"])
    assert reader.list_tags() == {"latest": 1, "tagged": 1}
    with pytest.raises(NotContinued, match=r"version 1 in .* has other values already"):
        writer.push(values(2), 1)
    assert reader.get(1).values.global_t == 10


def test_versions_grow(writer):
    writer.push(values(5), 5)
    with pytest.raises(NotContinued, match="version 4 cannot follow version 5"):
        writer.push(values(4), 4)
    with pytest.raises(NotContinued, match="version -1"):
        writer.push(values(4), -1)


def test_a_writer_goes_on_where_another_one_ended(writer, tmp_path):
    writer.push(values(5), 5, ["kept"])
    successor = DatabaseWriter(DirectoryStore(tmp_path))
    assert successor.list_tags() == {"latest": 5, "kept": 5}
    with pytest.raises(NotContinued):
        successor.push(values(4), 4)


@pytest.mark.parametrize("identifier", [3, np.int64(3), "latest", "unknown"])
def test_an_identifier_without_a_version_is_named(reader, identifier):
    with pytest.raises(NoSuchVersion, match=str(identifier)):
        reader.get(identifier)


@pytest.mark.parametrize("kind", ["writer", "reader"])
def test_a_version_that_is_yet_to_come_is_waited_for(request, writer, kind):
    database = request.getfixturevalue(kind)
    found = []
    waiting = threading.Thread(target=lambda: found.append(database.get("first", block=20)))
    waiting.start()
    writer.push(values(1), 1, ["first"])
    waiting.join()
    assert [each.number for each in found] == [1]
    with pytest.raises(NoSuchVersion, match="second"):
        database.get("second", block=0.01)


def test_damaged_data_is_never_returned(writer, reader, tmp_path):
    writer.push(values(1), 1)
    (data,) = tmp_path.glob("version-1.*")
    data.write_bytes(data.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedCheckpoint, match=r"version-1\."):
        reader.get()
    data.unlink()
    with pytest.raises(DamagedCheckpoint, match=r"version-1\."):
        reader.get()


def test_a_damaged_index_is_named(writer, reader, tmp_path):
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(DamagedCheckpoint, match=r"index\.json in"):
        reader.list_tags()


def test_an_array_that_is_no_vector_of_float32_is_refused(writer):
    with pytest.raises(ValueError, match="vector must be float32 of one dimension, is float64"):
        writer.push(PolicyValues(np.zeros(2)), 1)
    assert writer.list_versions() == []
