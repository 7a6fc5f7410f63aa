"""A Slurm cluster of real daemons: each node is a network namespace with a host name of its own."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from networks import Machine, Network, network
from processes import Process, Training, wait_for
from programs import PATH, needs, program

NEEDS_SLURM = needs(
    all(program(name) for name in ("slurmctld", "slurmd", "srun")),
    "needs slurmctld and slurmd (apt install slurmctld slurmd)",
)

_CONFIGURATION = """\
ClusterName=test
SlurmctldHost=control({control})
AuthType=auth/none
CredType=cred/none
SlurmUser=root
StateSaveLocation={directory}/state
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdSpoolDir={directory}/%n
SlurmdPidFile={directory}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
MpiDefault=none
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


class Slurm:
    """slurmctld on a machine of its own, and a slurmd on each of ``count`` more."""

    def __init__(self, training: Training, machines: Network, count: int) -> None:
        self._training = training
        self._directory = training.directory / "slurm"
        (self._directory / "state").mkdir(parents=True)
        self._control = machines.add()
        nodes = {f"node{number}": machines.add() for number in range(1, count + 1)}
        lines = [
            f"NodeName={n} NodeAddr={m.address} CPUs=4 RealMemory=8192" for n, m in nodes.items()
        ]
        self._file = self._directory / "slurm.conf"
        self._file.write_text(
            _CONFIGURATION.format(
                control=self._control.address, directory=self._directory, nodes="\n".join(lines)
            )
        )
        # Nothing is limited, and a namespace of ip's has no file system of control groups.
        (self._directory / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self._start(self._control, "control", "slurmctld", "-D", "-i")
        for name, machine in nodes.items():
            (self._directory / name).mkdir()
            self._start(machine, name, "slurmd", "-D", "-f", str(self._file))
        wait_for(lambda: self._idle() == count, "all nodes being ready")

    def run(self, name: str, arguments: Sequence[str]) -> Process:
        """Run a program where the controller is."""
        return self._start(self._control, "control", *arguments, log=name)

    def _idle(self) -> int:
        shown = subprocess.run(
            self._command(self._control, "control", "sinfo", "-h", "-t", "idle", "-o", "%D"),
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        return sum(map(int, shown.stdout.split()))

    def _start(self, machine: Machine, host: str, *arguments: str, log: str = "") -> Process:
        return self._training.start(log or arguments[0], self._command(machine, host, *arguments))

    def _command(self, machine: Machine, host: str, *arguments: str) -> list[str]:
        path = str(program(arguments[0]) or arguments[0])
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host]
        return machine.command(
            "env", f"SLURM_CONF={self._file}", f"PATH={PATH}", *named, path, *arguments[1:]
        )


@contextmanager
def cluster(training: Training, count: int) -> Iterator[Slurm]:
    """Yield a cluster of ``count`` nodes; after it no process of a job may be left."""
    with network(training) as machines:
        yield Slurm(training, machines, count)
        left = [each.name() for each in training.survivors() if "slurm" not in each.name()]
        training.close()
        for process in training.survivors():  # what a slurmd that is killed leaves behind
            process.kill()
    assert not left
