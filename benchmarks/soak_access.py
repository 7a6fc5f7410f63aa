"""What the processes of a soak show one another: nothing, or certificates and tokens."""

import os
import ssl
import subprocess
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

from servers import COMMANDS

_DEADLINE_S = 60.0

_ANSWER_S = 2.0


def _opener(*handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """Return what asks without the proxy that variables of the environment name."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), *handlers)


class Access:
    """Access without TLS and tokens."""

    #: Of the section ``access`` of the YAML file.
    options: Mapping[str, str] = {}
    is_guarded = False

    def answer(self, url: str, path: str) -> str:
        """Return what the port of operators at ``url`` answers; OSError if it does not."""
        with _opener().open(f"http://{url}{path}", timeout=_ANSWER_S) as answer:
            return str(answer.read().decode())

    def renew(self) -> None:
        """Do nothing: there is nothing to be renewed."""

    def outdated(self, urls: Iterable[str]) -> list[str]:
        """Return which servers do not show the certificate that there is now."""
        return []


class GuardedAccess(Access):
    """TLS in both directions, and tokens, of ``relaax-certificates`` in ``folder``."""

    is_guarded = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._make()
        self.options = {
            "--auth-token-file": str(folder / "tokens"),
            "--tls-cert": str(folder / "server.crt"),
            "--tls-key": str(folder / "server.key"),
            "--tls-ca": str(folder / "ca.crt"),
        }
        os.environ.update(  # of all processes that are started from now on
            RELAAX_TOKEN_FILE=str(folder / "environment.token"),
            RELAAX_TLS_CA=str(folder / "ca.crt"),
            RELAAX_TLS_CERT=str(folder / "environment.crt"),
            RELAAX_TLS_KEY=str(folder / "environment.key"),
        )
        self._context = ssl.create_default_context(cafile=folder / "ca.crt")

    def answer(self, url: str, path: str) -> str:
        """Return what the port of operators at ``url`` answers; OSError if it does not."""
        token = (self._folder / "monitor.token").read_text().strip()
        request = urllib.request.Request(f"https://{url}{path}")
        request.add_header("Authorization", f"Bearer {token}")
        tls = urllib.request.HTTPSHandler(context=self._context)
        with _opener(tls).open(request, timeout=_ANSWER_S) as answer:
            return str(answer.read().decode())

    def renew(self) -> None:
        """Sign new certificates, and make new tokens, while all processes run."""
        self._make("--renew-tokens")

    def outdated(self, urls: Iterable[str]) -> list[str]:
        """Return which servers do not show the certificate that there is now."""
        now = (self._folder / "server.crt").read_text()
        return [url for url in urls if self._shown_at(url) not in now]

    def _shown_at(self, url: str) -> str:
        host, _, port = url.rpartition(":")
        return ssl.get_server_certificate(
            (host, int(port)), ca_certs=str(self._folder / "ca.crt"), timeout=_DEADLINE_S
        ).strip()

    def _make(self, *flags: str) -> None:
        command = [str(COMMANDS / "relaax-certificates"), str(self._folder), *flags]
        subprocess.run(  # noqa: S603 - a program of our own
            command, check=True, capture_output=True, timeout=_DEADLINE_S
        )
