"""The folder of a cluster's secrets."""

import contextlib
import logging
import os
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from relaax.errors import ConfigurationError
from relaax.net.access import Role, TokenFile
from relaax.net.access.tokens import roles_of_lines
from relaax.server.certificates.authority import Authority, Signed, hosts_of

_log = logging.getLogger(__name__)

CA, SERVER, ENVIRONMENT = "ca", "server", "environment"
TOKENS = "tokens"

#: Names of this machine, which every server's certificate has.
LOCAL = ("localhost", "127.0.0.1", "::1")

#: Random bytes of a token.
_TOKEN_BYTES = 32

#: Tokens of a role in the file: one that others may not know yet, the current one, and an old one
#: that others may still use.
_GENERATIONS = 3

#: The roles whose token also has a file of its own, for clients.
_OF_CLIENTS = (Role.ENVIRONMENT, Role.MONITOR)

_HEADER = "# ROLE TOKEN, the newest first: all count, the second of a role is shown."


class SecretsFolder:
    """Certificates with keys, and tokens; only its owner may read it.

    An existing folder keeps its mode: it may hold other files, of others. Then a warning is logged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{path}: cannot be made: {error.strerror}") from error
        if path.stat().st_mode & 0o077:
            _log.warning("%s: others may look into this folder of secrets; chmod 700 it", path)

    def sign(self, hosts: Sequence[str], days: int, days_of_authority: int) -> bool:
        """Write new certificates for a server at ``hosts`` and for environments.

        Hosts of the present certificate stay: its servers may go on with the new one. An existing
        authority signs them; return whether a new one was made.
        """
        names = list(dict.fromkeys([*LOCAL, *self.hosts(), *hosts]))
        authority = self._authority()
        is_new = authority is None
        if authority is None:
            authority = Authority.new("RELAAX", days_of_authority)
            self._write_signed(CA, authority.pem)
        self._write_signed(SERVER, authority.sign("relaax server", names, days))
        self._write_signed(ENVIRONMENT, authority.sign("relaax environment", [], days))
        return is_new

    def hosts(self) -> list[str]:
        """Return the hosts of the servers' certificate; empty without a certificate."""
        file = self.path / f"{SERVER}.crt"
        if not file.exists():
            return []
        try:
            return hosts_of(file.read_bytes())
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{file}: its hosts cannot be read ({error}); delete it, and name all hosts"
            ) from error

    def write_tokens(self, *, renew: bool) -> bool:
        """Write a token for each role, unless they are there; return whether there are new ones.

        To ``renew`` them, new ones are written above the present ones. A token is used until a
        newer one is there, and is valid until three newer ones are there.
        """
        file = self.path / TOKENS
        if file.exists() and not renew:
            return False
        before = roles_of_lines(file) if file.exists() else [(_HEADER, None)]
        self._write({TOKENS: "\n".join([*_renewed(before), ""]).encode()})
        tokens = TokenFile(file)
        for role in _OF_CLIENTS:
            self._write({_file_of(role): f"{tokens.own(role)}\n".encode()})
        return True

    def refused_tokens(self) -> list[Path]:
        """Return the files for clients whose token is not in the servers' file any more."""
        tokens = TokenFile(self.path / TOKENS)
        files = {role: self.path / _file_of(role) for role in _OF_CLIENTS}
        return [
            file
            for role, file in files.items()
            if file.exists() and tokens.role_of(file.read_bytes().strip()) is not role
        ]

    def _authority(self) -> Authority | None:
        certificate, key = self.path / f"{CA}.crt", self.path / f"{CA}.key"
        if not certificate.exists() and not key.exists():
            return None
        try:
            return Authority.read(Signed(certificate.read_bytes(), key.read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"{key}: the authority of this folder cannot be used ({error}); put both of its "
                "files back, or take another folder"
            ) from error

    def _write_signed(self, name: str, signed: Signed) -> None:
        self._write({f"{name}.key": signed.key, f"{name}.crt": signed.certificate})

    def _write(self, files: Mapping[str, bytes]) -> None:
        """Replace files, each at once: a server that reads one finds all of it.

        All are written before one is replaced: files that belong together change together.
        """
        for name, content in files.items():
            with self._errors_explained(name):
                new = self._new(name)
                new.unlink(missing_ok=True)
                mode = 0o644 if new.suffix == ".crt" else 0o600
                descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
        for name in files:
            with self._errors_explained(name):
                self._new(name).replace(self.path / name)

    def _new(self, name: str) -> Path:
        return self.path / f".new.{name}"

    @contextlib.contextmanager
    def _errors_explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigurationError(
                f"{self.path / name}: cannot be written: {error.strerror}"
            ) from error


def _renewed(before: Sequence[tuple[str, Role | None]]) -> Iterator[str]:
    """Yield the lines of a token file, with a new token above each role's.

    Tokens that are too old are left out; comments stay where they are.
    """
    seen: Counter[Role] = Counter()
    for line, role in before:
        if role is None:
            yield line
            continue
        if not seen[role]:
            yield _new_line(role)
        seen[role] += 1
        if seen[role] < _GENERATIONS:
            yield line
    yield from (_new_line(role) for role in Role if not seen[role])


def _file_of(role: Role) -> str:
    return f"{role.value}.token"


def _new_line(role: Role) -> str:
    return f"{role.value} {secrets.token_urlsafe(_TOKEN_BYTES)}"
