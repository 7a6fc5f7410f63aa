"""A real HAProxy before RLX servers, with the configuration that the project ships."""

import re
from collections.abc import Sequence
from pathlib import Path

import psutil
from processes import REPOSITORY, Process, Training, free_port, wait_for
from programs import needs, program

SHIPPED = REPOSITORY / "deploy" / "haproxy" / "haproxy.cfg"

HAPROXY = program("haproxy")

NEEDS_HAPROXY = needs(HAPROXY is not None, "needs haproxy (apt install haproxy)")


class Balancer:
    """Sends connections to servers: pairs of the addresses for clients and for operators.

    Without ``checks`` it takes turns, and does not know which servers are ready.
    """

    def __init__(
        self, training: Training, servers: Sequence[tuple[str, str]], checks: bool = True
    ) -> None:
        self.url = f"127.0.0.1:{free_port()}"
        path = training.directory / "haproxy.cfg"
        text = configuration(self.url, servers)
        if not checks:
            text = text.replace("default-server check", "default-server")
            text = text.replace("leastconn", "roundrobin").replace("option httpchk", "#")
        path.write_text(text)
        arguments = [str(HAPROXY), "-db", "-f", str(path)]
        self.process: Process = training.start("haproxy", arguments)
        wait_for(lambda: self._listens() or not self.process.is_running(), "HAProxy's start")
        assert self.process.is_running(), self.process.output()

    def _listens(self) -> bool:
        """Return whether it listens, without a connection, which it would hand to a server."""
        port = int(self.url.rpartition(":")[2])
        connections = psutil.Process(self.process.pid).net_connections("tcp")
        return any(
            each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in connections
        )


def configuration(url: str, servers: Sequence[tuple[str, str]], shipped: Path = SHIPPED) -> str:
    """Return what is shipped, with other addresses, and checks that come sooner."""
    text = re.sub(r"(?m)^    server .*\n", "", shipped.read_text())
    text = text.replace("bind :7001", f"bind {url}").replace("check port 7101 inter 2s", "check")
    lines = [
        f"    server rlx{number} {server} port {operators.rpartition(':')[2]} inter 200ms"
        for number, (server, operators) in enumerate(servers, 1)
    ]
    return "\n".join([text.rstrip(), *lines, ""])
