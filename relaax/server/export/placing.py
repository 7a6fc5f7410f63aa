"""Puts what was written in its place when it has been checked, and not before."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relaax.errors import ConfigurationError

#: What a SavedModel's folder holds.
_SAVED_MODEL = "saved_model.pb"


@contextmanager
def unchecked(place: Path) -> Iterator[Path]:
    """Yield where a file or a folder is written that is to be at ``place``, beside it.

    What is still there at the end, since ``keep`` was not called, is removed.
    """
    path = place.with_name(f".{place.name}.unchecked")
    _remove(path)
    try:
        yield path
    finally:
        _remove(path)


def keep(written: Path, place: Path) -> None:
    """Move what was written to its place; a file or a SavedModel that was there goes."""
    if place.is_dir():
        shutil.rmtree(place)
    os.replace(written, place)


def require_room(directory: Path) -> None:
    """Raise ConfigurationError where a folder would go that is no SavedModel."""
    if directory.is_dir() and any(directory.iterdir()) and not (directory / _SAVED_MODEL).exists():
        raise ConfigurationError(
            f"--saved-model: {directory} holds other files than a SavedModel: name another folder"
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
