"""The processes of an example, whichever engine starts them: cartpole.py -e cartpole-remote."""

from pathlib import Path

from processes import REPOSITORY

from relaax.launcher.described import described, read_procfile

EXAMPLE = REPOSITORY / "examples" / "experiments" / "cartpole.py"

#: By name: the program, the cores and the MiB of memory.
PROCESSES = {
    "default-ps": ("relaax-parameter-server", 1, 1024),
    "default-trainer0": ("relaax-learner", 2, 1024),
    "policy0": ("relaax-inference-server", 2, 1024),
    "policy1": ("relaax-inference-server", 2, 1024),
    **{f"actors0.{number}": ("relaax-actor", 1, 1024) for number in range(1, 5)},
}


def programs_of(trial: Path) -> dict[str, str]:
    """Return the programs of a trial's Procfile, by the names of their lines."""
    lines = described(read_procfile(trial / "Procfile"))
    return {each.name: each.program for each in lines}
