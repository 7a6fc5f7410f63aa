"""The processes of a Procfile in a Slurm allocation: each is a job step on one of its nodes."""

import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaax.address import Address
from relaax.errors import ConfigurationError
from relaax.launcher.engines import node_program, told_program
from relaax.launcher.engines.plan import Needs, Placement, Planned, told
from relaax.launcher.engines.told_program import Run
from relaax.launcher.launched_process import send_to_group
from relaax.launcher.process_manager import ProcessManager
from relaax.processes.run_variables import INCARNATION

#: How long the nodes may take to say where they are.
_DEADLINE_S = 120.0

#: And Slurm's own commands.
_ANSWER_S = 10.0

_NO_ALLOCATION = """\
--on slurm runs in an allocation, and this is none: SLURM_JOB_ID or
SLURM_JOB_NUM_NODES is not set. For three nodes:
  salloc --nodes=3 relaax-train PROCFILE --on slurm
  sbatch --nodes=3 --wrap 'relaax-train PROCFILE --on slurm'"""


@dataclass(frozen=True)
class Node:
    """A machine of the allocation."""

    name: str
    address: str
    cpus: int
    #: A free port for each server, whether it will be here or not.
    ports: Sequence[int]


@contextmanager
def on_slurm(
    processes: Sequence[Planned],
    needs: Mapping[str, Needs],
    placement: Placement,
    variables: Mapping[str, str],
    printer: Any,
    restarts: bool,
) -> Iterator[ProcessManager]:
    """Yield a manager of job steps; ConfigurationError outside of an allocation."""
    if not {"SLURM_JOB_ID", "SLURM_JOB_NUM_NODES"} <= os.environ.keys():
        raise ConfigurationError(_NO_ALLOCATION)
    servers = [process for process in processes if process.listens is not None]
    nodes = _nodes([process.listens.port for process in servers if process.listens is not None])
    placed = placed_on(nodes, processes, needs, placement)
    places = {
        server.name: Address(placed[server.name].address, placed[server.name].ports[number])
        for number, server in enumerate(servers)
    }
    folder = Path(f"/tmp/relaax-{secrets.token_hex(4)}")  # noqa: S108  # of any node
    manager = ProcessManager(printer, restarts, stop=_stop_step)
    with tempfile.TemporaryDirectory(prefix="relaax-") as inputs:
        for process, said in zip(processes, told(processes, places, folder), strict=True):
            files = {str(path): text for path, text in said.files.items()}
            own = {**variables, **process.variables()}
            # It is not in the file, which is written once: each start has another one.
            started = {**os.environ, INCARNATION: own.pop(INCARNATION, "0")}
            told_file = Path(inputs) / f"{process.name}.json"
            told_file.write_text(Run(said.command, str(Path.cwd()), own, files).line())
            node = placed[process.name]
            step = _step(node, process, needs.get(process.line, Needs()))
            program = [sys.executable, "-m", told_program.__name__]
            command = f"exec {shlex.join([*step, *program])} < {shlex.quote(str(told_file))}"
            manager.add_process(process.name, command, env=started)
        yield manager


def _stop_step(name: str, group: int) -> None:
    """Let a job step save and end; ``group`` is the process group of its srun.

    srun kills all of the step when it gets a signal itself.
    """
    steps = _output(
        "squeue", "--steps", "--noheader", "--format=%i %j", f"--job={os.environ['SLURM_JOB_ID']}"
    )
    for line in steps.splitlines():
        step, _, found = line.partition(" ")
        if found.strip() == name:
            _output("scancel", "--signal=TERM", step)
            return
    send_to_group(group, signal.SIGTERM)  # it is being started


def _output(*command: str) -> str:
    """Return what a command of Slurm's prints; nothing if it fails."""
    with suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(  # noqa: S603  # no shell
            command, capture_output=True, text=True, timeout=_ANSWER_S, check=False
        ).stdout
    return ""


def placed_on(
    nodes: Sequence[Node],
    processes: Sequence[Planned],
    needs: Mapping[str, Needs],
    placement: Placement,
) -> dict[str, Node]:
    """Return the node of each process.

    Spread, each is where most cores are left; packed, on the first node that has enough of them.
    Nodes of which nothing is left are shared.
    """
    left = {node.name: float(node.cpus) for node in nodes}
    found = {}
    for process in processes:
        cpus = needs.get(process.line, Needs()).cpus
        node = max(nodes, key=lambda node: left[node.name])
        if placement is Placement.PACK:
            node = next((node for node in nodes if left[node.name] >= cpus), node)
        left[node.name] -= cpus
        found[process.name] = node
    return found


def _step(node: Node, process: Planned, needs: Needs) -> list[str]:
    """Return the command of a job step, up to what it runs."""
    step = ["srun", "--overlap", f"--nodelist={node.name}", "--nodes=1", "--ntasks=1"]
    step += [f"--job-name={process.name}", f"--cpus-per-task={max(1, round(needs.cpus))}"]
    if needs.gpus:
        step.append(f"--gpus={round(needs.gpus)}")
    if needs.memory_gib:
        step.append(f"--mem={round(needs.memory_gib * 1024)}M")
    return step


def _nodes(ports: Sequence[int]) -> list[Node]:
    """Ask all nodes of the allocation who they are."""
    count = os.environ["SLURM_JOB_NUM_NODES"]
    program = [sys.executable, "-m", node_program.__name__, *map(str, ports)]
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
