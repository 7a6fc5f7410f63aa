"""Files and folders that the section ``algorithm`` of a YAML file names."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import relaax
from relaax.errors import ConfigurationError, closest, did_you_mean_one_of

#: The key of the algorithm's section that may name a file.
_NETWORK = "network"

#: Algorithms that go by a key of another one.
_OTHER_NAMES = {"td3": "; TD3 is name: ddpg with the key twin: true"}


def locate_algorithm(section: Mapping[str, Any], source: Path) -> Path:
    """Return the folder of the algorithm that the YAML's ``algorithm:`` section names.

    The key ``path`` is a folder, relative to the YAML file's folder or to the working directory, in
    this order. The key ``name`` is the name of a bundled algorithm. ConfigurationError if the
    algorithm is not found; the message lists the folders or names that were tried.
    """
    path, name = section.get("path"), section.get("name")
    if path is not None and name is not None:
        raise ConfigurationError(
            f"{source}: algorithm: give 'path' or 'name', not both: either names an algorithm"
        )
    if path is None and name is None:
        raise ConfigurationError(
            f"{source}: algorithm: give 'path' (a folder) or 'name' "
            f"(one of {', '.join(bundled_algorithms())}){_misspelt(section)}"
        )
    for key, value in (("path", path), ("name", name)):
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigurationError(f"{source}: algorithm: {key}: must be a {key}, is {value!r}")
    return _by_name(str(name), source) if path is None else _by_path(str(path), source)


def _misspelt(section: Mapping[str, Any]) -> str:
    """Return the question whether a key was meant to be one of the two; else nothing."""
    meant = ((key, closest(key, ("path", "name"))) for key in section)
    return next((f"; did you mean {name} by {key}?" for key, name in meant if name), "")


def bundled_algorithms() -> list[str]:
    """Return the names of the algorithms that come with RELAAX."""
    return sorted(path.parent.name for path in _bundle().glob("*/__init__.py"))


def _by_name(name: str, source: Path) -> Path:
    if name not in bundled_algorithms():
        raise ConfigurationError(
            f"{source}: algorithm: name: unknown algorithm {name!r}; "
            f"the bundled algorithms are {', '.join(bundled_algorithms())}"
            + (
                _OTHER_NAMES.get(name.lower())
                or did_you_mean_one_of(name.lower(), bundled_algorithms())
            )
        )
    return _bundle() / name


def _by_path(path: str, source: Path) -> Path:
    written = os.path.expanduser(path)  # leaves an unknown ~user alone, where Path raises
    candidates = [source.parent / written, Path.cwd() / written]
    for candidate in candidates:
        if os.path.isfile(candidate / "__init__.py"):  # false, too, where access is denied
            return candidate.resolve()
    looked = " and ".join(dict.fromkeys(str(candidate.resolve()) for candidate in candidates))
    name = Path(path).name
    is_bundled = name and os.path.isfile(_bundle() / name / "__init__.py")
    raise ConfigurationError(
        f"{source}: algorithm: path: {path} is not a folder with an __init__.py; looked in {looked}"
        + (f"; for the bundled algorithm write 'name: {name}' instead" if is_bundled else "")
    )


def _bundle() -> Path:
    """Return the folder of all bundled algorithms: the installed package's, or the checkout's."""
    package = Path(relaax.__file__).parent
    installed = package / "bundled_algorithms"
    return installed if installed.is_dir() else package.parent / "algorithms"


def with_file_beside(source: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with the full path of a network's file in the YAML file's folder.

    Any other path is left to the working directory.
    """
    written = parameters.get(_NETWORK)
    if not isinstance(written, str):
        return dict(parameters)
    beside = source.parent / os.path.expanduser(written)
    if not os.path.isfile(beside):  # false, too, where access is denied or the text is no path
        return dict(parameters)
    return {**parameters, _NETWORK: str(beside.resolve())}
