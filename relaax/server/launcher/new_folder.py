"""Writes files into a new folder."""

from collections.abc import Mapping
from pathlib import Path

from relaax.errors import ConfigurationError


def write_new_folder(directory: Path, files: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into ``directory`` and return the files.

    The folder is made if it is missing. ConfigurationError if it is not empty, or cannot be used.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise ConfigurationError(f"{directory} is not empty: name a new folder")
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write to {directory}: {error.strerror}") from error
    return [directory / name for name in files]
