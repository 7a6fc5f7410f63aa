"""A real etcd for tests."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import free_port, wait_for
from programs import needs, program

from relaax.names.etcd import EtcdNames
from relaax.names.registry import RegistryAway

ETCD = program("etcd")

needs_etcd = needs(ETCD is not None, "there is no etcd (Debian's etcd-server)")


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run an etcd with its data in ``folder``; yield its address."""
    address, peers = (f"127.0.0.1:{free_port()}" for _ in range(2))
    words = [
        str(ETCD), "--data-dir", str(folder / "etcd"), "--logger", "zap", "--log-level", "error",
        "--listen-client-urls", f"http://{address}", "--advertise-client-urls", f"http://{address}",
        "--listen-peer-urls", f"http://{peers}", "--heartbeat-interval", "50",
        "--election-timeout", "250", "--unsafe-no-fsync",
        "--initial-advertise-peer-urls", f"http://{peers}",
        "--initial-cluster", f"default=http://{peers}",
    ]  # fmt: skip
    with subprocess.Popen(words) as etcd:
        try:
            wait_for(lambda: _answers(address), "etcd")
            yield address
        finally:
            etcd.kill()


def _answers(address: str) -> bool:
    try:
        EtcdNames(address, 1.0).resolve("a")
    except RegistryAway:
        return False
    return True
