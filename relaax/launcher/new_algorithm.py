"""Writes a small algorithm, with all that trains it, into a folder."""

from pathlib import Path

import relaax
from relaax.launcher.new_application import FIRST_PORT, with_ports, write_new_folder
from relaax.launcher.ports import free_pair

_TEMPLATE = Path(relaax.__file__).parent / "algorithm_template"

#: Beside the algorithm's own modules.
_DATA = ("training.yaml", "Procfile")


def write_new_algorithm(directory: Path) -> list[Path]:
    """Copy the template into ``directory`` and return the files.

    Its servers have ports that are free. The folder is made if it is missing.
    ConfigurationError if it is not empty, or cannot be used.
    """
    names = [*sorted(path.name for path in _TEMPLATE.glob("*.py")), *_DATA]
    texts = {name: (_TEMPLATE / name).read_text(encoding="utf-8") for name in names}
    return write_new_folder(directory, with_ports(free_pair(FIRST_PORT), texts))


def next_steps(directory: Path, files: list[Path]) -> str:
    """Return what is said when the folder has been written."""
    return f"""\
{directory} holds {", ".join(path.name for path in files)}.

Train it (the environment is CartPole-v1, which needs the package gymnasium: the extra
`environments` of this package has it):

  cd {directory}
  relaax-train Procfile

Then change agent.py and parameter_server.py. docs/algorithms.md says what the servers expect of
them, and what relaax.learning has. With --log-level DEBUG a server shows tracebacks."""
