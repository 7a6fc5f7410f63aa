"""The section ``access``, which may be in a file of its own: so one training is guarded or not."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relaax.configuration.option_kinds import can_be_a_path
from relaax.configuration.yaml_reader import read_keys

#: The section with options of all servers.
ACCESS = "access"

#: Its keys that name files; they may be in a server's own section, too.
FILES = ("--auth-token-file", "--tls-cert", "--tls-key", "--tls-ca")


def with_access_file(content: Mapping[str, Any], source: Path) -> dict[str, Any]:
    """Return what the YAML file ``source`` holds, with the keys of the file that ``access`` names.

    That file's path is relative to the folder of ``source``. Paths of tokens and certificates are
    whole, in all sections: a relative one is in the folder of the file that has it, or in the
    working directory if a file is there and none in that folder. ConfigurationError if the file
    cannot be read.
    """
    whole = {name: _with_files_beside(source, section) for name, section in content.items()}
    file = _access_file(content, source)
    if file is not None:
        whole[ACCESS] = _with_files_beside(file, read_keys(file, "--tls-cert"))
    return whole


def place_of_access(content: Mapping[str, Any], source: Path) -> str:
    """Return, for messages, where the keys of ``access`` stand: in a file of their own, or not.

    ``content`` is what ``source`` holds, as it is written.
    """
    return str(_access_file(content, source) or f"{source}: {ACCESS}")


def _access_file(content: Mapping[str, Any], source: Path) -> Path | None:
    written = content.get(ACCESS)
    if not isinstance(written, str):
        return None
    return source.parent / os.path.expanduser(written)


def _with_files_beside(source: Path, section: Any) -> Any:
    if not isinstance(section, Mapping):
        return section  # which is refused later, where it has to be one
    beside = {key: _beside(source.parent, section[key]) for key in FILES if key in section}
    return {**section, **beside}


def _beside(folder: Path, written: Any) -> Any:
    if not isinstance(written, str) or not written or not can_be_a_path(written):
        return written  # which is refused later
    here = folder / os.path.expanduser(written)
    if os.path.isfile(written) and not os.path.isfile(here):
        return written
    return str(here.absolute())
