"""The memory that is left in a container, whichever version of cgroups limits it."""

import os
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from clock import Clock

from relaax.processes.available_memory import AvailableMemory
from relaax.processes.cgroups import cgroups_of

MIB = 2**20

V1_FILES = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2_FILES = ("memory.max", "memory.current", "inactive_file")

#: What version 1 says where there is no limit.
NO_LIMIT_V1 = 9223372036854771712


class Machine:
    """A /proc and cgroups as a test wants them."""

    def __init__(self, directory: Path) -> None:
        self.proc, self.cgroups = directory / "proc", directory / "cgroups"
        (self.proc / "self").mkdir(parents=True)

    def says(self, cgroup: str, *mounts: str) -> None:
        (self.proc / "self" / "cgroup").write_text(cgroup)
        (self.proc / "self" / "mountinfo").write_text("".join(f"{each}\n" for each in mounts))

    def mount(self, kind: str, root: str = "/", options: str = "rw") -> str:
        return f"35 31 0:32 {root} {self.cgroups} rw,relatime shared:9 - {kind} {kind} {options}"

    def group(self, path: str, files: tuple[str, str, str], limit, used: int, inactive: int = 0):
        directory = self.cgroups / path.strip("/")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / files[0]).write_text(f"{limit}\n")
        (directory / files[1]).write_text(f"{used}\n")
        (directory / "memory.stat").write_text(f"cache 5\n{files[2]} {inactive}\nother 7\n")

    def left(self) -> int:
        return AvailableMemory(self.proc).bytes()


@pytest.fixture(name="machine")
def _machine(tmp_path, monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("M", (), {"available": 1000 * MIB}))
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("cgroup", "kind", "options", "files"),
    [
        ("0::/box\n", "cgroup2", "rw", V2_FILES),
        ("5:cpu:/else\n4:memory:/box\n0::/\n", "cgroup", "rw,memory", V1_FILES),
    ],
)
class TestEitherVersion:
    def test_the_limit_of_the_container_counts(self, machine, cgroup, kind, options, files):
        machine.says(cgroup, machine.mount(kind, options=options))
        machine.group("/box", files, 300 * MIB, 100 * MIB)
        assert machine.left() == 200 * MIB

    def test_memory_that_the_kernel_takes_back_is_available(
        self, machine, cgroup, kind, options, files
    ):
        machine.says(cgroup, machine.mount(kind, options=options))
        machine.group("/box", files, 300 * MIB, 290 * MIB, inactive=50 * MIB)
        assert machine.left() == 60 * MIB

    def test_the_machine_may_have_less(self, machine, cgroup, kind, options, files):
        machine.says(cgroup, machine.mount(kind, options=options))
        machine.group("/box", files, 5000 * MIB, 100 * MIB)
        assert machine.left() == 1000 * MIB

    def test_a_limit_that_is_exceeded_leaves_nothing(self, machine, cgroup, kind, options, files):
        machine.says(cgroup, machine.mount(kind, options=options))
        machine.group("/box", files, 300 * MIB, 310 * MIB)
        assert machine.left() == 0

    def test_a_group_whose_files_have_gone_limits_nothing(
        self, machine, cgroup, kind, options, files
    ):
        machine.says(cgroup, machine.mount(kind, options=options))
        assert machine.left() == 1000 * MIB


def test_no_limit_is_max_in_version_2_and_a_huge_number_in_version_1(machine):
    machine.says("0::/box\n", machine.mount("cgroup2"))
    machine.group("/box", V2_FILES, "max", 100 * MIB)
    assert machine.left() == 1000 * MIB
    machine.says("4:memory:/box\n", machine.mount("cgroup", options="rw,memory"))
    machine.group("/box", V1_FILES, NO_LIMIT_V1, 100 * MIB)
    assert machine.left() == 1000 * MIB


def test_a_group_around_it_may_leave_less(machine):
    machine.says("0::/slice/box/inner\n", machine.mount("cgroup2"))
    machine.group("/slice/box/inner", V2_FILES, 300 * MIB, 100 * MIB)
    machine.group("/slice/box", V2_FILES, "max", 500 * MIB)
    machine.group("/slice", V2_FILES, 600 * MIB, 550 * MIB)
    assert machine.left() == 50 * MIB


def test_a_container_that_sees_its_own_group_as_the_root(machine):
    """With version 1 a container sees the host's path, and its own group mounted at the top."""
    mount = machine.mount("cgroup", root="/docker/1a2b", options="rw,memory")
    machine.says("4:memory:/docker/1a2b\n", mount)
    machine.group("/", V1_FILES, 300 * MIB, 100 * MIB)
    assert machine.left() == 200 * MIB


def test_a_group_with_a_longer_name_is_not_within_it(machine):
    machine.says("0::/box-2\n", machine.mount("cgroup2", root="/box"))
    machine.group("/-2", V2_FILES, 300 * MIB, 100 * MIB)
    machine.group("/box-2", V2_FILES, 700 * MIB, 100 * MIB)
    assert machine.left() == 600 * MIB


def test_without_proc_the_machine_counts(tmp_path, machine):
    assert AvailableMemory(tmp_path / "nowhere").bytes() == 1000 * MIB


def test_the_groups_of_this_process_are_found_and_can_be_read():
    groups = cgroups_of("memory")
    if not groups:
        pytest.skip("no cgroups are mounted here")
    assert all(os.access(group.directory, os.R_OK) for group in groups)


def test_a_figure_is_used_again_while_it_is_fresh(tmp_path, monkeypatch):
    clock, machine = Clock(), SimpleNamespace(available=1000 * MIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    memory = AvailableMemory(tmp_path / "nowhere", fresh_s=0.1, clock=clock)
    assert memory.bytes() == 1000 * MIB
    machine.available = 10 * MIB
    clock.now += 0.09
    assert memory.bytes() == 1000 * MIB
    clock.now += 0.02
    assert memory.bytes() == 10 * MIB
