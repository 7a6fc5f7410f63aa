"""The processes of a Procfile in a Slurm allocation: each is a job step on one of its nodes."""

import json
import math
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaax.address import Address
from relaax.errors import ConfigurationError
from relaax.launcher.described import Described, Placement, told
from relaax.launcher.engines.hosted import Hosted
from relaax.launcher.engines.local import LocalEngine
from relaax.launcher.ports import free_port

#: How long the nodes may take to say where they are.
_DEADLINE_S = 120.0

#: Any port: nothing is sent there.
_PORT = 9

_NO_ALLOCATION = (
    "--on slurm runs in an allocation, and here is none: SLURM_JOB_ID or SLURM_JOB_NUM_NODES is "
    "not set. For three nodes: salloc --nodes=3 relaax-train PROCFILE --on slurm; or: "
    "sbatch --nodes=3 --wrap 'relaax-train PROCFILE --on slurm'"
)


@dataclass(frozen=True)
class Node:
    """A machine of the allocation."""

    name: str
    address: str
    cpus: int
    #: A free port for each server, whether it will be here or not.
    ports: Sequence[int]


class SlurmEngine(LocalEngine):
    """Runs each process by an ``srun`` beside the launcher.

    ConfigurationError outside of an allocation.
    """

    def __init__(
        self, processes: Sequence[Described], placement: Placement, variables: Mapping[str, str]
    ) -> None:
        if not {"SLURM_JOB_ID", "SLURM_JOB_NUM_NODES"} <= os.environ.keys():
            raise ConfigurationError(_NO_ALLOCATION)
        super().__init__(processes, variables)
        listening = {each.name: each.listens.port for each in processes if each.listens}
        nodes = _nodes([*listening.values()])
        self._nodes = placed_on(nodes, processes, placement)
        places = {
            name: Address(self._nodes[name].address, self._nodes[name].ports[number])
            for number, name in enumerate(listening)
        }
        self._told = told(processes, places)

    def hosted(self, name: str) -> Hosted:
        """Return a place in a job step, which srun connects to this process's orders."""
        return Hosted(through=_step(self._nodes[name], self._told[name]))


def placed_on(
    nodes: Sequence[Node], processes: Sequence[Described], placement: Placement
) -> dict[str, Node]:
    """Return the node of each process.

    Spread, each is where most cores are left; packed, on the first node that has enough of them.
    Nodes of which nothing is left are shared.
    """
    left = {node.name: float(node.cpus) for node in nodes}
    found = {}
    for process in processes:
        cpus = process.needs.cpus
        node = max(nodes, key=lambda node: left[node.name])
        if placement is Placement.PACK:
            node = next((node for node in nodes if left[node.name] >= cpus), node)
        left[node.name] -= cpus
        found[process.name] = node
    return found


def _step(node: Node, process: Described) -> list[str]:
    """Return the command of a job step, up to its program."""
    needs = process.needs
    step = ["srun", "--overlap", f"--nodelist={node.name}", "--nodes=1", "--ntasks=1"]
    step += [f"--job-name={process.name}", f"--cpus-per-task={max(1, round(needs.cpus))}"]
    if needs.gpus:
        step.append(f"--gpus={math.ceil(needs.gpus)}")  # steps share what they overlap on
    if needs.memory_gib:
        step.append(f"--mem={round(needs.memory_gib * 1024)}M")
    return step


def _nodes(ports: Sequence[int]) -> list[Node]:
    """Return all nodes of the allocation."""
    count = os.environ["SLURM_JOB_NUM_NODES"]
    program = [sys.executable, "-m", "relaax.launcher.engines.slurm", *map(str, ports)]
    command = ["srun", "--overlap", f"--nodes={count}", "--ntasks-per-node=1", *program]
    try:
        done = subprocess.run(  # noqa: S603  # Slurm's own
            command, capture_output=True, text=True, timeout=_DEADLINE_S, check=True
        )
    except subprocess.CalledProcessError as error:
        raise ConfigurationError(
            f"--on slurm: the nodes do not answer: {error.stderr.strip()}"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"--on slurm: the nodes do not answer: {error}") from error
    found = [Node(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    return sorted(found, key=lambda node: node.name)


def main() -> int:
    """Print, as a line of JSON, the node that this runs on.

        srun python -m relaax.launcher.engines.slurm [PORT ...]

    That is Slurm's name for it, the address at which the others find it, how many cores the job has
    there, and a free port for each port that is asked for.
    """
    address = _address(os.environ["SLURM_LAUNCH_NODE_IPADDR"])
    ports: list[int] = []
    for written in map(int, sys.argv[1:]):
        ports.append(free_port(address, written, ports))
    node = {
        "name": os.environ["SLURMD_NODENAME"],
        "address": address,
        "cpus": int(os.environ.get("SLURM_CPUS_ON_NODE", "1")),
        "ports": ports,
    }
    print(json.dumps(node), flush=True)
    return 0


def _address(launcher: str) -> str:
    """Return this machine's own address on the way to the launcher's."""
    family = socket.AF_INET6 if ":" in launcher else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((launcher, _PORT))
        return str(probe.getsockname()[0])


if __name__ == "__main__":
    sys.exit(main())
