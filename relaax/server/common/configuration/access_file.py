"""The section ``access``, which may be in a file of its own: so one training is guarded or not."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relaax.server.common.configuration.yaml_reader import read_yaml

#: The section with options of all servers.
ACCESS = "access"


def with_access_file(content: Mapping[str, Any], source: Path) -> dict[str, Any]:
    """Return what the YAML file ``source`` holds, with the keys of the file that ``access`` names.

    That file's path is relative to the folder of ``source``. ConfigurationError if it cannot be
    read.
    """
    written = content.get(ACCESS)
    if not isinstance(written, str):
        return dict(content)
    return {**content, ACCESS: read_yaml(source.parent / os.path.expanduser(written))}
