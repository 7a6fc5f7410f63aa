"""Where an algorithm's folder is."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import relaax
from relaax.errors import ConfigurationError


def locate_algorithm(section: Mapping[str, Any], source: Path) -> Path:
    """Return the folder that the YAML's ``algorithm:`` section means.

    ``path`` is looked for in the YAML file's folder first and in the working directory then;
    ``name`` is that of a bundled algorithm. ConfigurationError says where was looked.
    """
    path, name = section.get("path"), section.get("name")
    if (path is None) == (name is None):
        raise ConfigurationError(
            f"{source}: algorithm: give 'path' (a folder) or 'name' "
            f"(one of {', '.join(bundled_algorithms())})"
        )
    for key, value in (("path", path), ("name", name)):
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigurationError(f"{source}: algorithm: {key}: must be a {key}, is {value!r}")
    return _by_name(str(name), source) if path is None else _by_path(str(path), source)


def bundled_algorithms() -> list[str]:
    """Return the names of the algorithms that come with RELAAX."""
    return sorted(path.parent.name for path in _bundle().glob("*/__init__.py"))


def _by_name(name: str, source: Path) -> Path:
    if name not in bundled_algorithms():
        raise ConfigurationError(
            f"{source}: algorithm: name: there is no {name!r}; "
            f"bundled are {', '.join(bundled_algorithms())}"
        )
    return _bundle() / name


def _by_path(path: str, source: Path) -> Path:
    written = os.path.expanduser(path)  # leaves an unknown ~user alone, where Path raises
    candidates = [source.parent / written, Path.cwd() / written]
    for candidate in candidates:
        if os.path.isfile(candidate / "__init__.py"):  # false, too, where access is denied
            return candidate.resolve()
    looked = " and ".join(dict.fromkeys(str(candidate.resolve()) for candidate in candidates))
    raise ConfigurationError(
        f"{source}: algorithm: path: {path} is no folder with an __init__.py; looked in {looked}"
    )


def _bundle() -> Path:
    """The folder in an installed package, or that of the checkout it is installed from."""
    package = Path(relaax.__file__).parent
    installed = package / "bundled_algorithms"
    return installed if installed.is_dir() else package.parent / "algorithms"
