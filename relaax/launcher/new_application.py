"""Writes folders to start from: an environment with all that trains it, or an algorithm.

The command ``relaax-new`` writes the first, and ``relaax-train --new-algorithm`` the second.
"""

import argparse
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from relaax import __version__
from relaax.address import MAX_PORT
from relaax.errors import ConfigurationError
from relaax.launcher.ports import free_pair
from relaax.processes.whole_numbers import positive
from relaax.spaces import NO_BOUND

#: The parameter server's port in the templates; the RLX server has the next one.
FIRST_PORT = 7000

_TEMPLATE = Path(__file__).parent / "application_template"

#: The template of an algorithm, and its files beside the modules.
_ALGORITHM = Path(__file__).parent / "algorithm_template"
_DATA = ("training.yaml", "Procfile")

_DESCRIPTION = """\
Make the folder NAME with an environment to fill in, a configuration, a Procfile, a test and a
README. It can be trained as it is: "relaax-train" in the folder does so. The environment is a small
simulator in plain Python, which you replace by your own."""

_PLAIN = {
    "ENVIRONMENT": "the simulator, in plain Python, and the program that connects it",
    "FIRST_CHANGE": "Replace the class `Simulator` in `environment.py` by yours: `restart` begins "
    "an episode, `apply`\n   takes an action. A state is a number, a list, a numpy array, or a "
    "dict of these by name.",
    "SEVERAL": "`relaax-train --concurrency env=4` starts four",
    "HOW_TO_EVALUATE": 'a copy of `environment.py` whose `Client` has `evaluate="deterministic"`',
}


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


@dataclass(frozen=True)
class Kind:
    """The special parts of a folder."""

    #: The module of the template that becomes ``environment.py``.
    environment: str
    #: The algorithm's section of the YAML file.
    section: str
    #: Keys of the template's YAML, each with another value.
    settings: tuple[str, ...]
    #: By file: texts that stand in the template, and those to take in their place.
    changes: Mapping[str, Mapping[str, str]]


CHOICES = Kind(
    "simulator",
    "choices",
    ("action_size: 3", "state_size: [2]", "rewards_gamma: 0.95"),
    {"README.md": _PLAIN},
)

#: The same simulator, whose point moves by as much as an action says.
NUMBERS = Kind(
    "simulator",
    "numbers",
    ("state_size: [2]", "rewards_gamma: 0.95"),
    {
        "README.md": _PLAIN,
        "environment.py": {
            "import sys\n": "import sys\nfrom typing import Any\n",
            '{"type": "Discrete", "n": 3}': '{"type": "Box", "shape": [1], "low": -1, "high": 1}',
            "Action 0 moves the point to the left, 1 leaves it where it is, 2 moves it to the "
            "right.": "An action is one number from -1 to 1: how far the point moves, and to which "
            "side.",
            "action: int": "action: Any",
            'time is out."': "time is out.\n\n        ``action`` is a float32 array [1].\n"
            '        "',
            "(action - 1)": "max(-1.0, min(1.0, float(action[0])))",
        },
    },
)


def main() -> int:
    """Write the folder and return the exit status."""
    parser = argparse.ArgumentParser(prog="relaax-new", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("name", type=Path, metavar="NAME", help="the new folder")
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--continuous", action="store_true", help="actions are numbers, and not choices"
    )
    one.add_argument(
        "--gymnasium",
        metavar="ID",
        help="train the environment that Gymnasium knows as ID, such as CartPole-v1 (needs the "
        "extra 'environments')",
    )
    parser.add_argument(
        "--port-base",
        type=positive,
        metavar="PORT",
        help="the parameter server's port; the RLX server has the next one (default: 7000, or the "
        "first pair above it that is free)",
    )
    arguments = parser.parse_args()
    try:
        port = arguments.port_base or free_pair(FIRST_PORT)
        if arguments.gymnasium is not None:
            kind = kind_of_gymnasium(arguments.gymnasium)
        else:
            kind = NUMBERS if arguments.continuous else CHOICES
        files = write_new_application(arguments.name, kind, port)
    except ConfigurationError as error:
        parser.error(str(error))
    print(next_steps(arguments.name, files))
    return 0


def write_new_application(directory: Path, kind: Kind, port: int = FIRST_PORT) -> list[Path]:
    """Write the files of ``kind`` into ``directory`` and return them.

    The servers listen at ``port`` and at the next one.

    The folder is made if it is missing. ConfigurationError if it is not empty, or cannot be used.
    """
    if not 0 < port < MAX_PORT:
        raise ConfigurationError(f"--port-base is 1 to {MAX_PORT - 1}, not {port}")
    configuration = _read("servers.yaml") + _read(f"{kind.section}.yaml")
    texts = {
        "environment.py": _read(f"{kind.environment}.py"),
        "training.yaml": _with_settings(configuration, kind.settings),
        "Procfile": _read("Procfile"),
        "test_environment.py": _read("test_environment.py"),
        "README.md": _filled(_read("README.md"), {"NAME": directory.resolve().name}),
    }
    filled = {name: _filled(text, kind.changes.get(name, {})) for name, text in texts.items()}
    return write_new_folder(directory, with_ports(port, filled))


def with_ports(port: int, texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts of templates with other ports, ``port`` for the first one."""
    return {
        name: re.sub(r"\blocalhost:700([01])\b", lambda n: f"localhost:{port + int(n[1])}", text)
        for name, text in texts.items()
    }


def kind_of_gymnasium(env_id: str) -> Kind:
    """Return the folder for the environment ``env_id``; ConfigurationError if there is none."""
    try:
        import gymnasium  # a part of the extra "environments"
    except ImportError as error:
        raise ConfigurationError(
            "--gymnasium needs the package gymnasium: pip install 'relaax[environments]'"
        ) from error
    try:
        with gymnasium.make(env_id) as environment:
            observations, actions = environment.observation_space, environment.action_space
            spec = environment.spec
    except Exception as error:  # an environment may raise anything
        raise ConfigurationError(f"--gymnasium: {env_id} cannot be made: {error}") from error
    section, sizes = _sizes(env_id, observations, actions, gymnasium.spaces)
    threshold = None if spec is None else spec.reward_threshold
    goal = "# --goal-return: 100" if threshold is None else f"--goal-return: {threshold:g}"
    return Kind(
        "gymnasium_environment",
        section,
        (goal, *sizes),
        {
            "README.md": {
                "ENVIRONMENT": f"makes {env_id}, and connects it",
                "FIRST_CHANGE": "Wrap the environment in `make_environment` in `environment.py`, "
                "or return one of your own there.",
                "SEVERAL": "`--count` in the `Procfile` says how many there are",
                "HOW_TO_EVALUATE": "`python environment.py --rlx-server localhost:7001 --evaluate "
                "--episodes 100`",
            },
            "environment.py": {"CartPole-v1": env_id},
            "Procfile": {":7001": ":7001 --count 8 --per-connection 8 --seed 1"},
        },
    )


def _sizes(
    env_id: str, observations: Any, actions: Any, spaces: Any
) -> tuple[str, tuple[str, ...]]:
    """Return the section for an environment's spaces, and their values in it."""
    if not isinstance(observations, spaces.Box):
        raise ConfigurationError(
            f"--gymnasium: the observations of {env_id} are {observations}; this writes folders "
            "for a Box: see docs/gymnasium.md for all others"
        )
    common = (f"state_size: {list(observations.shape)}", "reward_scale: 0.1")
    if isinstance(actions, spaces.Discrete):
        return "choices", (*common, f"action_size: {int(actions.n)}")
    if isinstance(actions, spaces.Box):
        return "numbers", (
            *common,
            f"action_size: {list(actions.shape)}",
            _bound("action_low", actions.low),
            _bound("action_high", actions.high),
        )
    raise ConfigurationError(
        f"--gymnasium: the actions of {env_id} are {actions}; this writes folders for Discrete and "
        "Box: see docs/gymnasium.md for all others"
    )


def _bound(key: str, values: Any) -> str:
    """Return the line of a bound of actions: a number where all are the same, else lists."""
    bounds = np.where(np.abs(values) < NO_BOUND, values, np.copysign(np.inf, values))
    if np.isinf(bounds).all():
        return f"# {key}: none"
    shortest = np.vectorize(lambda value: float(f"{value:.7g}"), otypes=[float])(bounds)
    bound = shortest.flat[0] if (shortest == shortest.flat[0]).all() else shortest
    return f"{key}: {yaml.safe_dump(bound.tolist(), default_flow_style=True).split(chr(10))[0]}"


def next_steps(directory: Path, files: list[Path]) -> str:
    """Return the text that follows when the folder has been written."""
    return f"""\
{directory} holds {", ".join(path.name for path in files)}.

Train it:

  cd {directory}
  relaax-train

Then put your simulator into environment.py. README.md says how to go on."""


def write_new_algorithm(directory: Path) -> list[Path]:
    """Copy an algorithm, with servers at free ports, into ``directory`` and return the files.

    The folder is made if it is missing. ConfigurationError if it is not empty, or cannot be used.
    """
    names = [*sorted(path.name for path in _ALGORITHM.glob("*.py")), *_DATA]
    texts = {name: (_ALGORITHM / name).read_text(encoding="utf-8") for name in names}
    return write_new_folder(directory, with_ports(free_pair(FIRST_PORT), texts))


def steps_of_algorithm(directory: Path, files: list[Path]) -> str:
    """Return the text that follows when the folder of an algorithm has been written."""
    return f"""\
{directory} holds {", ".join(path.name for path in files)}.

Train it (the environment is CartPole-v1, which needs the package gymnasium: the extra
`environments` of this package has it):

  cd {directory}
  relaax-train Procfile

Then change agent.py and parameter_server.py. docs/your_algorithm.md says what the servers expect of
them, and what relaax.learning has. With --log-level DEBUG a server shows tracebacks."""


def _read(name: str) -> str:
    return (_TEMPLATE / name).read_text("utf-8")


def _with_settings(text: str, settings: tuple[str, ...]) -> str:
    """Return a YAML text with other values of keys; comments stay in their columns."""
    for setting in settings:
        key = setting.removeprefix("# ").partition(":")[0]
        written = re.search(rf"(?<=^  ){re.escape(key)}: [^#\n]*", text, re.MULTILINE)
        if written is None:
            raise AssertionError(f"the template has no {key}")
        value = f"{setting}  ".ljust(len(written[0])) if written[0].endswith(" ") else setting
        text = text[: written.start()] + value + text[written.end() :]
    return text


def _filled(text: str, changes: Mapping[str, str]) -> str:
    """Return ``text`` with other words in place of the template's."""
    for old, new in changes.items():
        if old not in text:
            raise AssertionError(f"the template has no {old!r}")
        text = text.replace(old, new)
    return text


if __name__ == "__main__":
    sys.exit(main())
