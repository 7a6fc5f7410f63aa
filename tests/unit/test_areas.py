"""The second tier of tests: a change runs those that it can break, and all where it is unknown."""

import subprocess
from pathlib import Path

import areas
import pytest

TABLE = areas.areas()
FILES = subprocess.run(
    ["git", "ls-files"], cwd=areas.REPOSITORY, check=True, capture_output=True, text=True
).stdout.splitlines()


@pytest.mark.parametrize("name", TABLE)
def test_each_path_and_test_of_the_table_is_there(name: str) -> None:
    for pattern in (*TABLE[name].paths, *TABLE[name].tests):
        only = areas.Area((pattern,), ())
        assert only.is_touched_by(FILES), pattern


def test_a_test_is_of_one_area() -> None:
    for path in FILES:
        assert sum(area.has_test(path) for area in TABLE.values()) <= 1, path


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("deploy/compose/compose.yaml", ["images", "deployment"]),
        ("environments/ALE/main", ["images", "programs"]),
        ("requirements/run.txt", ["images", "saving", "unpickling", "package"]),
        ("relaax/net/channels.py", ["machines", "unpickling"]),
        ("algorithms/trpo/method_tf.py", ["methods"]),
        ("relaax/launcher/engines/ray_cluster.py", ["clusters"]),
        ("benchmarks/soak.py", ["benchmarks"]),
        ("docs/concepts.md", ["site"]),
        ("tests/integration/test_ray.py", ["clusters"]),
        ("relaax/steps.py", []),
    ],
)
def test_a_change_asks_for_the_tests_of_its_paths(path: str, names: list[str]) -> None:
    assert areas.touched(TABLE, [path]) == names


def test_where_the_change_is_not_known_all_areas_are_asked_for(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", tmp_path]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    changed = areas.changed_since("HEAD^", tmp_path)
    assert changed is None
    assert areas.touched(TABLE, changed) == list(TABLE)


def test_a_change_is_what_differs_from_the_commit_before(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", tmp_path]
    subprocess.run([*git, "init", "-q"], check=True)
    for name in ("first", "second with a blank"):
        (tmp_path / name).write_text(name)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", name], check=True)
    assert areas.changed_since("HEAD^", tmp_path) == ["second with a blank"]


def test_an_option_names_areas() -> None:
    assert areas.chosen(TABLE, "images, site") == {"images", "site"}
    assert areas.chosen(TABLE, "none") == set()
    assert areas.chosen(TABLE, "all") == set(TABLE)
    with pytest.raises(ValueError, match="no area is called docs: there are images, "):
        areas.chosen(TABLE, "docs")
