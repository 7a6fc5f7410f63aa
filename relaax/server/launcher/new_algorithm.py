"""Writes a small algorithm, with all that trains it, into a folder."""

import shutil
from pathlib import Path

import relaax
from relaax.errors import ConfigurationError

_TEMPLATE = Path(relaax.__file__).parent / "algorithm_template"

#: Beside the algorithm's own modules.
_DATA = ("training.yaml", "Procfile")


def write_new_algorithm(directory: Path) -> list[Path]:
    """Copy the template into ``directory`` and return the files.

    The folder is made if it is missing. ConfigurationError if it is not empty, or cannot be used.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise ConfigurationError(f"{directory} is not empty: name a new folder")
        names = [*sorted(path.name for path in _TEMPLATE.glob("*.py")), *_DATA]
        return [Path(shutil.copyfile(_TEMPLATE / name, directory / name)) for name in names]
    except OSError as error:
        raise ConfigurationError(f"cannot write to {directory}: {error.strerror}") from error


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
