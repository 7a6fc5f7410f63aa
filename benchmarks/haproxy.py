"""The command of HAProxy with the configuration that is shipped, for servers of a benchmark."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cells import Unmeasured
from launch import REPOSITORY

#: Debian puts HAProxy where users do not look.
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

_SHIPPED = REPOSITORY / "deploy" / "haproxy" / "haproxy.cfg"


def haproxy_command(
    url: str,
    servers: Sequence[str],
    directory: Path,
    checks: Sequence[str] | None = None,
    has_tls: bool = False,
) -> list[Any]:
    """Return what balances ``url`` between ``servers``; Unmeasured where there is no HAProxy.

    ``checks`` are the servers' addresses for operators, by which it sees five times a second which
    are ready, over TLS where they have it; without them it does not look.
    """
    program = shutil.which("haproxy", path=_PATH)
    if program is None:
        raise Unmeasured("needs haproxy (apt install haproxy)")
    text = re.sub(r"(?m)^    server .*\n", "", _SHIPPED.read_text())
    text = text.replace("bind :7001", f"bind {url}").replace("check port 7101 inter 2s", "check")
    if checks is None:
        text = re.sub(r"(?m)^    (option httpchk|default-server) .*\n", "", text)
    lines = [f"    server rlx{number} {server}" for number, server in enumerate(servers, 1)]
    if checks is not None:
        lines = [
            f"{line} addr 127.0.0.1 port {at.rpartition(':')[2]} inter 200ms"
            + (" check-ssl verify none" if has_tls else "")
            for line, at in zip(lines, checks, strict=True)
        ]
    path = directory / "haproxy.cfg"
    path.write_text("\n".join([text.rstrip(), *lines, ""]))
    return [program, "-db", "-f", path]
