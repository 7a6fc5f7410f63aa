"""The stage of a curriculum moves on, reaches all environments, and outlives a parameter server."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from processes import REPOSITORY, wait_for

from relaax.parameters.database import DatabaseName, DatabaseRoot, Type

pytestmark = [pytest.mark.integration, pytest.mark.timeout(500)]

EXAMPLES = REPOSITORY / "examples" / "experiments"
PROGRAM = Path(sys.executable).parent / "relaax-experiment"

#: Notes each reset, in a file of its process.
ENVIRONMENT = f"""
import os
import sys

sys.path.insert(0, {str(EXAMPLES)!r})
from corridor import Corridor


class Noting(Corridor):
    def reset(self, *, seed=None, options=None):
        with open(f"resets-{{os.getpid()}}", "a") as file:
            file.write(options["stage"] + "\\n")
        return super().reset(seed=seed, options=options)
"""


def test_a_stage_reaches_all_environments_and_stays_after_a_kill(tmp_path: Path) -> None:
    shown = [PROGRAM, "show", str(EXAMPLES / "curriculum.py"), "-e", "curriculum"]
    text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    for before, after in (
        ("max_global_step: 60000", "max_global_step: 10_000_000"),
        (f"{EXAMPLES / 'corridor.py'}:Corridor", "noting.py:Noting"),
    ):
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "curriculum.yaml").write_text(text)
    (tmp_path / "noting.py").write_text(ENVIRONMENT)
    log = tmp_path / "log"
    run = [PROGRAM, "run", "curriculum.yaml", "-f", "one", "--restart"]
    with log.open("w") as output, subprocess.Popen(run, cwd=tmp_path, stdout=output) as running:
        try:
            wait_for(lambda: "curriculum corridor: stage far" in log.read_text(), "far", 240)
            files = list(tmp_path.glob("resets-*"))
            assert len(files) == 3  # those of the evaluation, too
            wait_for(lambda: all(resets(each)[-1] == "far" for each in files), "all far", 30)
            for file in files:
                stages = list(dict.fromkeys(resets(file)))
                assert stages == sorted(stages, key=["near", "middle", "far"].index)
                assert resets(file) == sorted(resets(file), key=stages.index)  # none goes back
            os.kill(process(tmp_path, "default-ps"), signal.SIGKILL)
            killed_at, before = len(log.read_text()), {each: len(resets(each)) for each in files}
            wait_for(lambda: "evaluation: version" in log.read_text()[killed_at:], "more", 120)
            wait_for(
                lambda: all(len(resets(each)) > before[each] + 5 for each in files), "resets", 30
            )
        finally:
            running.terminate()
    found = tmp_path.glob("resets-*")  # also of actors that were started again
    after = {stage for each in found for stage in resets(each)[before.get(each, 0) :]}
    assert after == {"far"}
    place = tmp_path / "training/experiments/curriculum/one/policies/default/database"
    root = DatabaseRoot(place, Type.METADATA)
    with closing(root.reader(DatabaseName("curriculum", "one", "default"))) as database:
        assert database.stage_of("corridor") == "far"


def resets(file: Path) -> list[str]:
    """Return the stage of each reset."""
    return file.read_text().split()


def process(folder: Path, name: str) -> int:
    """Return the number of a process of the trial."""
    status = [PROGRAM, "status", "-e", "curriculum", "-f", "one"]
    said = subprocess.run(status, cwd=folder, capture_output=True, text=True, check=True).stdout
    (line,) = [each for each in said.splitlines() if each.lstrip().startswith(name)]
    return int(next(word for word in line.split() if word.isdecimal()))
