"""A real container with a limit of memory, made with runc; it sees this machine's files."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil
from processes import MARK, Process, Training, wait_for
from programs import IS_ROOT, needs, program

MIB = 1024 * 1024

RUNC = program("runc")

NEEDS_RUNC = needs(RUNC is not None and IS_ROOT, "needs runc (apt install runc), and root")

#: What a container has of its own; everything else is this machine's.
_OWN = {"proc", "sys", "dev"}

MOUNTS: list[dict[str, object]] = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
    {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777"]},
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
    {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["ro"]},
]


class Container:
    """Runs one command with at most ``limit_mib`` of memory; all else is this machine's."""

    def __init__(
        self, training: Training, name: str, arguments: Sequence[str], limit_mib: int
    ) -> None:
        bundle = training.directory / f"container-{name}"
        (bundle / "rootfs").mkdir(parents=True)
        configuration = _configuration(training, arguments, limit_mib, bundle / "rootfs")
        self.start(training, name, bundle, configuration)

    def start(
        self, training: Training, name: str, bundle: Path, configuration: dict[str, object]
    ) -> None:
        """Run what the configuration says; ``bundle`` is a folder for its files."""
        self._state = str(bundle / "state")
        self._name = f"{name}-{os.getpid()}"
        (bundle / "config.json").write_text(json.dumps(configuration))
        pid_file = bundle / "pid"
        flags = ["run", "--bundle", str(bundle), "--pid-file", str(pid_file), self._name]
        self.process: Process = training.start(name, [*self._runc(), *flags])
        wait_for(lambda: pid_file.exists() or not self.process.is_running(), "a container")
        assert pid_file.exists(), self.process.output()
        self._init = psutil.Process(int(pid_file.read_text()))
        self._group = _memory_group(self._init.pid)

    def __enter__(self) -> "Container":
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(
            [*self._runc(), "delete", "--force", self._name], capture_output=True, check=False
        )
        self.process.wait()

    def killed_by_the_kernel(self) -> int:
        """Return how many of its processes the kernel has killed for want of memory."""
        for name in ("memory.oom_control", "memory.events"):  # cgroups of version 1, and 2
            path = self._group / name
            if path.exists():
                figures = dict(line.split() for line in path.read_text().splitlines())
                return int(figures["oom_kill"])
        raise FileNotFoundError(f"{self._group} does not say what was killed")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one more command in it, and return how it ended."""
        return subprocess.run(
            [*self._runc(), "exec", self._name, *arguments],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    def stop(self) -> int:
        """End it as Docker does, with SIGTERM to its first process; return its status."""
        self._init.send_signal(signal.SIGTERM)
        return self.process.wait()

    def memory_mib(self) -> float:
        """Return how much its processes own."""
        family = [self._init, *self._init.children(recursive=True)]
        return sum(process.memory_full_info().uss for process in family) / MIB

    def _runc(self) -> list[str]:
        return [str(RUNC), "--root", self._state]


def _configuration(
    training: Training, arguments: Sequence[str], limit_mib: int, root: Path
) -> dict[str, object]:
    """Return what runc reads: https://github.com/opencontainers/runtime-spec."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", MARK: str(training.directory)}
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(arguments),
            "env": [f"{name}={value}" for name, value in environment.items()],
            "cwd": str(training.directory),
            "noNewPrivileges": True,
        },
        "root": {"path": str(root)},
        "mounts": [*MOUNTS, *_this_machines_files(root)],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")],
            "resources": {"memory": {"limit": limit_mib * MIB}},
        },
    }


def _this_machines_files(root: Path) -> list[dict[str, object]]:
    mounts: list[dict[str, object]] = []
    for entry in sorted(Path("/").iterdir()):
        if entry.is_symlink():
            (root / entry.name).symlink_to(entry.readlink())
        elif entry.is_dir() and entry.name not in _OWN:
            mounts.append(
                {
                    "destination": str(entry), "type": "bind", "source": str(entry),
                    "options": ["rbind"],
                }
            )  # fmt: skip
    return mounts


def _memory_group(pid: int) -> Path:
    """Return the directory of the cgroup that limits a process."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return Path("/sys/fs/cgroup/memory") / path.lstrip("/")
    return Path("/sys/fs/cgroup") / path.lstrip("/")  # version 2 has one hierarchy, named last
