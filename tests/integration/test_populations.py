"""A population goes on, whichever of its processes is killed."""

import csv
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from operators import figures, is_ready
from processes import COMMANDS, Process, wait_for
from small_population import RATES, tagged_versions, write_small_league, write_small_population

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

#: Which of two policies copies the other one is chance: a copy of the one may be long in coming.
DEADLINE_S = 240.0


ANY = r"policy_\d"
#: What is killed, and who copies another one after that.
KILLED = {
    "population0": ANY,
    "policy_0-trainer0": "policy_0",
    "policy0": "policy_0",
    "policy_0-ps": "policy_0",
    "policy_1-ps": "policy_1",
}


def pid_of(folder: Path, name: str) -> int:
    record = json.loads((folder / "run.json").read_text())
    return int(record["workers"][name]["pid"])


def started(folder: Path, name: str) -> tuple[Process, Path]:
    """Run an experiment of a folder; return its process, and the trial's folder."""
    words = ["relaax-experiment", "run", f"{name}.yaml", "-f", "one", "--restart"]
    words += ["--http-port-base", "7500"]
    run = Process("experiment", [str(COMMANDS / words[0]), *words[1:]], folder)
    return run, folder / "training" / "experiments" / name / "one"


def kill(run: Process, folder: Path, name: str) -> None:
    """Kill a process of a trial, and wait until it has been started again."""
    os.kill(pid_of(folder, name), signal.SIGKILL)
    run.says(rf"{name} started .*\n(.*\n)*.*{name} started")


def test_a_population_goes_on_whichever_process_is_killed(tmp_path: Path) -> None:
    write_small_population(tmp_path / "pbt.yaml")
    run, folder = started(tmp_path, "pbt")

    def exploits(target: str) -> int:
        return len(re.findall(rf"population0 .* {target}: version \d+ has the param", run.output()))

    def another(target: str, what: str) -> None:
        before = exploits(target)
        wait_for(
            lambda: exploits(target) > before, f"an exploit of {target} after {what}", DEADLINE_S
        )

    tagged: dict[str, dict[str, int]] = {}
    try:
        another(ANY, "the start")
        assert "are not stored any more" not in run.output()  # nothing was lost
        for name, target in KILLED.items():
            for policy in RATES:
                tagged.setdefault(policy, {}).update(tagged_versions(folder, policy))
            kill(run, folder, name)
            another(target, f"kill -9 of {name}")
        for policy, tags in tagged.items():
            assert tags
            assert tags.items() <= tagged_versions(folder, policy).items()
        url = run.says(r"population0 answers operators at (localhost:\d+)")[1]
        assert is_ready(url)
        done = figures(url)
        assert done["relaax_population_exploits",] >= len(KILLED)
        status = [str(COMMANDS / "relaax-experiment"), "status", "-e", "pbt", "-f", "one"]
        said = subprocess.run(status, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert re.search(r"population0 +runs .*population: exploits \d+", said.stdout)
        run.signal(signal.SIGINT)
        assert run.wait() == 130
        lines = (folder / "population0" / "exploits.csv").read_text().splitlines()
        assert len(lines) - 1 >= 6
    finally:
        run.kill_family()


def test_an_exploiter_begins_anew_whichever_process_is_killed(tmp_path: Path) -> None:
    write_small_league(tmp_path / "league.yaml")
    run, folder = started(tmp_path, "league")

    def resets() -> int:
        return len(re.findall(r"exploiter-trainer0 .* has the parameters of main", run.output()))

    try:
        for name in ("", "population0", "exploiter-trainer0", "exploiter-ps"):
            before = resets()
            if name:
                kill(run, folder, name)
            what = f"a reset after kill -9 of {name}"
            wait_for(lambda before=before: resets() > before, what, DEADLINE_S)
        run.signal(signal.SIGINT)
        assert run.wait() == 130
        with (folder / "population0" / "league.csv").open() as lines:
            tagged = [row["tag"] for row in csv.DictReader(lines) if row["policy"] == "exploiter"]
        assert len(tagged) > 4  # those of resets, and the newest one
    finally:
        run.kill_family()
