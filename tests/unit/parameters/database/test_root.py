"""Databases by name below one root, and the one writer of each: seed 002, "About tags" 1 and 2."""

import os
import threading

import pytest
from parameter_databases import NAME, values

from relaax.errors import ConfigurationError
from relaax.parameters.database import DatabaseName, DatabaseRoot, ParameterDatabase


def test_a_database_is_one_experiment_trial_and_policy(tmp_path):
    root = DatabaseRoot(tmp_path)
    names = [NAME, NAME._replace(policy="other"), DatabaseName("atari", "trial-2", "main")]
    for version, name in enumerate(names):
        with root.writer(name, "the trainer") as writer:
            writer.push(values(version), version)
    (tmp_path / "atari" / "no-database" / "x").mkdir(parents=True)
    assert root.list_names() == names
    assert [root.reader(name).version_of() for name in names] == [0, 1, 2]


def test_a_second_writer_is_refused_by_the_name_of_the_first(tmp_path):
    root = DatabaseRoot(tmp_path)
    with (
        root.writer(NAME, "the first trainer"),
        pytest.raises(ConfigurationError) as refused,
        root.writer(NAME, "another trainer", wait_s=0.0),
    ):
        pass
    said = str(refused.value)
    assert (
        f"{tmp_path}/atari/trial-1/main is in use by the first trainer (pid {os.getpid()}" in said
    )
    assert "a parameter database has one writer" in said
    with root.writer(NAME, "the next trainer", wait_s=0.0) as writer:
        writer.push(values(1), 1)


def test_readers_cannot_write(tmp_path):
    root = DatabaseRoot(tmp_path)
    with root.writer(NAME, "the trainer") as writer:
        writer.push(values(1), 1)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    reader = root.reader(NAME)
    reader.get()
    changes = {"push", "tag", "untag", "gc", "clone", "update_metadata"}
    assert not changes & set(dir(ParameterDatabase))
    assert changes <= set(dir(writer))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == files


def test_nothing_is_made_to_be_read(tmp_path):
    with pytest.raises(ConfigurationError, match="there is no directory"):
        DatabaseRoot(tmp_path).reader(NAME)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", DatabaseName._fields)
def test_a_name_that_would_lead_elsewhere_is_refused(tmp_path, part):
    with pytest.raises(ConfigurationError, match=f"the name of the {part} .* is '..'"):
        DatabaseRoot(tmp_path).reader(NAME._replace(**{part: ".."}))


def test_a_clone_has_all_versions_and_tags_and_goes_on_by_itself(tmp_path):
    root = DatabaseRoot(tmp_path)
    clone = NAME._replace(trial="trial-2")
    with root.writer(NAME, "the trainer") as writer, root.writer(clone, "another") as other:
        for version in range(3):
            writer.push(values(version), version, ["first"] if version == 0 else [])
        other.clone(root.reader(NAME))
        other.push(values(3), 3)
        with pytest.raises(ConfigurationError, match="has versions already"):
            other.clone(root.reader(NAME))
        assert writer.list_versions() == [0, 1, 2]
    reader = root.reader(clone)
    assert reader.list_versions() == [0, 1, 2, 3]
    assert reader.list_tags() == {"latest": 3, "first": 0}
    assert reader.get(2).pushed_at == root.reader(NAME).get(2).pushed_at


def test_a_clone_that_fails_half_way_can_be_made_again(tmp_path, monkeypatch):
    root = DatabaseRoot(tmp_path)
    clone = NAME._replace(trial="trial-2")
    with root.writer(NAME, "the trainer") as writer, root.writer(clone, "another") as other:
        for version in range(3):
            writer.push(values(version), version, ["first"] if version == 0 else [])
        reader = root.reader(NAME)
        with monkeypatch.context() as patched:
            patched.setattr(reader, "get", lambda version: {0: writer.get(0)}[version])
            with pytest.raises(KeyError):
                other.clone(reader)
        assert (other.list_versions(), other.list_tags()) == ([], {})
        other.clone(reader)
        assert other.list_tags() == {"latest": 2, "first": 0}


def test_many_threads_push_tag_and_read(tmp_path):
    with DatabaseRoot(tmp_path).writer(NAME, "the trainer", keep_untagged=2) as writer:
        writer.push(values(0), 0)
        failures = []

        def use():
            try:
                for _ in range(20):
                    found = writer.get(writer.tag("latest", threading.current_thread().name))
                    assert found.values.global_t == 10 * found.number
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=use, name=f"reader-{number}") for number in range(3)]
        for thread in threads:
            thread.start()
        for version in range(1, 20):
            writer.push(values(version), version)
            writer.gc()
        for thread in threads:
            thread.join()
    assert failures == []
