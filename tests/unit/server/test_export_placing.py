"""What is written takes the place of what was there when it has been checked, and not before."""

from pathlib import Path

import pytest

from relaax.errors import ConfigurationError
from relaax.server.export.main import keep, require_room, unchecked


def write(path: Path, text: str) -> None:
    """Write a file, or a SavedModel."""
    if path.name.endswith(".unchecked") and "model" in path.name:
        path.mkdir()
        path /= "saved_model.pb"
    path.write_text(text)


@pytest.mark.parametrize("name", ["policy.onnx", "model"])
def test_a_kept_file_replaces_the_old_one(tmp_path: Path, name: str):
    place = tmp_path / name
    for text in ("old", "new"):
        with unchecked(place) as path:
            write(path, text)
            assert path.parent == tmp_path  # renaming is atomic in one folder
            keep(path, place)
        found = place / "saved_model.pb" if place.is_dir() else place
        assert found.read_text() == text
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("name", ["policy.onnx", "model"])
def test_a_file_that_is_not_kept_leaves_the_old_one(tmp_path: Path, name: str):
    place = tmp_path / name
    with unchecked(place) as path:
        write(path, "old")
        keep(path, place)
    with unchecked(place) as path:
        write(path, "bad")
    found = place / "saved_model.pb" if place.is_dir() else place
    assert found.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_a_folder_of_other_files_is_not_replaced(tmp_path: Path):
    require_room(tmp_path / "new")
    require_room(tmp_path)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ConfigurationError, match="holds other files than a SavedModel"):
        require_room(tmp_path)
    (tmp_path / "saved_model.pb").touch()
    require_room(tmp_path)
