"""A program that says, as a line of JSON, what is to be known of the node that it runs on.

    srun python -m relaax.launcher.engines.node_program [PORT ...]

That is Slurm's name for it, the address at which the others find it, how many cores the job has
there, and a free port for each of those that are asked for.
"""

import json
import os
import socket
import sys

from relaax.launcher.engines.hosted import free_port

#: Any port: nothing is sent there.
_PORT = 9


def main() -> int:
    """Print the line."""
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
