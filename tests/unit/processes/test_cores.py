"""How many cores a process may use: of the machine, of its affinity, and of its cgroups."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relaax.processes.cgroups import usable_cores


class Machine:
    """A /proc and cgroups as a test wants them."""

    def __init__(self, directory: Path) -> None:
        self.process, self.cgroups = directory / "proc" / "self", directory / "cgroups"
        self.process.mkdir(parents=True)

    def says(self, cgroup: str, kind: str, options: str = "rw", root: str = "/") -> None:
        (self.process / "cgroup").write_text(cgroup)
        (self.process / "mountinfo").write_text(
            f"35 31 0:32 {root} {self.cgroups} rw,relatime shared:9 - {kind} {kind} {options}\n"
        )

    def group(self, path: str, **files: str) -> None:
        directory = self.cgroups / path.strip("/")
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name.replace("__", ".")).write_text(f"{text}\n")

    def cores(self) -> int:
        return usable_cores(self.process)


@pytest.fixture(name="machine")
def _machine(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(8))
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("200000 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("25000 50000", 1),
     ("1600000 100000", 8), ("max 100000", 8), ("max", 8)],
)  # fmt: skip
def test_the_time_of_a_cgroup_counts_and_part_of_a_core_is_one(machine, quota, cores):
    machine.says("0::/box\n", "cgroup2")
    machine.group("/box", cpu__max=quota)
    assert machine.cores() == cores


@pytest.mark.parametrize(("quota", "cores"), [("300000", 3), ("120000", 2), ("-1", 8)])
def test_version_1_of_cgroups_says_the_same(machine, quota, cores):
    machine.says("4:memory:/else\n5:cpu,cpuacct:/box\n0::/\n", "cgroup", "rw,cpu,cpuacct")
    machine.group("/box", cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000")
    assert machine.cores() == cores


def test_a_cgroup_around_it_may_give_less(machine):
    machine.says("0::/slice/box/inner\n", "cgroup2")
    machine.group("/slice/box/inner", cpu__max="max 100000")
    machine.group("/slice/box", cpu__max="600000 100000")
    machine.group("/slice", cpu__max="300000 100000")
    assert machine.cores() == 3


def test_a_container_that_sees_its_own_cgroup_as_the_root(machine):
    machine.says("0::/\n", "cgroup2")
    machine.group("/", cpu__max="100000 100000")
    assert machine.cores() == 1
    machine.says("5:cpu:/docker/1a2b\n", "cgroup", "rw,cpu", root="/docker/1a2b")
    machine.group("/", cpu__cfs_quota_us="500000", cpu__cfs_period_us="100000")
    assert machine.cores() == 5


def test_without_cgroups_the_cores_that_the_process_is_bound_to_count(machine, tmp_path):
    assert usable_cores(tmp_path / "nowhere") == 8
    machine.says("0::/box\n", "cgroup2")
    assert machine.cores() == 8


def test_the_cores_of_a_real_process():
    one = {min(os.sched_getaffinity(0))}
    program = "from relaax.processes.cgroups import usable_cores; print(usable_cores())"
    found = subprocess.run(
        [sys.executable, "-c", program],
        preexec_fn=lambda: os.sched_setaffinity(0, one),
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert found.stdout == "1\n"


def test_nothing_else_counts_cores():
    root = Path(__file__).parents[3]
    counting = {
        str(path.relative_to(root))
        for folder in ("relaax", "algorithms", "environments", "examples", "benchmarks")
        for path in (root / folder).rglob("*.py")
        if any(name in path.read_text() for name in ("cpu_count", "sched_getaffinity"))
    }
    assert counting == {"relaax/processes/cgroups.py"}
