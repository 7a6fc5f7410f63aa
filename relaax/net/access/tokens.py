"""Tokens: secrets that prove the role of a calling process."""

import hashlib
import hmac
import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from pathlib import Path

from relaax.errors import ConfigurationError
from relaax.net.access.file_stamp import FromFiles, is_open_to_others

_log = logging.getLogger(__name__)

MIN_TOKEN_CHARACTERS = 16

MAX_TOKEN_CHARACTERS = 512

#: The characters of a token: it stands in a line, in a header of HTTP, and in a variable.
_TOKEN = re.compile(r"[\x21-\x7e]+")


class Role(StrEnum):
    """The role of a token's bearer; the first word of its line in the token file."""

    #: A server, learner or actor: it may do everything.
    SERVER = "server"
    #: A program that plays an environment.
    ENVIRONMENT = "environment"
    #: Prometheus, or a person who looks at figures.
    MONITOR = "monitor"


class Right(Enum):
    """The permission that a call needs."""

    #: To get actions for an environment, over RLX.
    PLAY = "play environments"
    #: To read and change parameters, steps and experience, over gRPC.
    SYNCHRONIZE = "call servers"
    #: To read how a server is, and its figures, over HTTP.
    OBSERVE = "read figures"


RIGHTS = {
    Role.SERVER: frozenset(Right),
    Role.ENVIRONMENT: frozenset({Right.PLAY}),
    Role.MONITOR: frozenset({Right.OBSERVE}),
}


_LINE = f"a line is ROLE TOKEN, with a role of {', '.join(Role)}"


@dataclass(frozen=True)
class _Entry:
    role: Role
    token: str = field(repr=False)
    digest: bytes = field(repr=False)


class TokenFile:
    """The tokens of a training, one in each line: ``ROLE TOKEN``.

    Lines that begin with ``#`` are comments. A role may have several tokens, the newest first: all
    are accepted, and this process shows the second one, since others may not know the newest yet.
    So tokens are replaced without a restart: a new one is written on top, and the tokens below the
    second one are deleted. The file is read again within two seconds, and each process logs the
    number of tokens then.

    ConfigurationError, which never shows a token, for an unusable file, also for a file without a
    token of the role that this process ``shows``.
    """

    def __init__(self, path: Path, shows: Role | None = None) -> None:
        self._path = path
        self._shows = shows
        self._file = FromFiles([path], self._read, self._complain, self._announce)

    def allows_digest(self, digest: bytes, right: Right) -> bool:
        """Return whether a token with this digest is still accepted."""
        return self.why_refused(digest, right) is None

    def why_refused(self, digest: bytes, right: Right) -> str | None:
        """Return why a token of this digest does not give a right; None if it does."""
        role = self._role_of(digest)
        if role is None:
            return "the token that was shown is not in the --auth-token-file of this server"
        if right in RIGHTS[role]:
            return None
        return f"the token that was shown is of the role {role}, which may not {right.value}"

    def generation(self) -> int:
        """Return a number that changes whenever the accepted tokens may have changed."""
        return self._file.generation()

    def role_of(self, token: str | bytes | None) -> Role | None:
        """Return the role of ``token``; None for an unknown one."""
        return self._role_of(digest_of(token)) if token else None

    def _role_of(self, digest: bytes) -> Role | None:
        """Return the role; before a token is refused, the newest changes are read, too.

        Another process may have read its new token from the same file a moment ago.
        """
        found = _role_in(self._file.content(), digest)
        return _role_in(self._file.content(looks=True), digest) if found is None else found

    def own(self, role: Role, *, looks: bool = False) -> str:
        """Return the token that proves a role; ConfigurationError if there is none.

        ``looks``: whether to read changes of the last second, too.
        """
        tokens = self._of(role, self._file.content(looks=looks))
        return tokens[min(1, len(tokens) - 1)]

    def _read(self) -> list[_Entry]:
        entries = _entries(self._path)
        if self._shows is not None:
            self._of(self._shows, entries)
        return entries

    def _of(self, role: Role, entries: Sequence[_Entry]) -> list[str]:
        tokens = [entry.token for entry in entries if entry.role is role]
        if not tokens:
            raise ConfigurationError(f"{self._path}: has no token for the role {role.value}")
        return tokens

    def _announce(self, entries: Sequence[_Entry]) -> None:
        roles = Counter(entry.role for entry in entries)
        many = ", ".join(f"{number} of {role.value}" for role, number in roles.items())
        _log.info("the tokens in %s count from now on: %s", self._path, many)

    def _complain(self, error: Exception) -> None:
        _log.error("the tokens read before still hold: %s", error)


def _role_in(entries: Sequence[_Entry], digest: bytes) -> Role | None:
    found = None
    for entry in entries:  # all of them, in constant time
        if hmac.compare_digest(digest, entry.digest):
            found = entry.role
    return found


def digest_of(token: str | bytes) -> bytes:
    """Return a hash: of the same length for all, so that comparing takes the same time."""
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).digest()


def require_token(token: str, where: str) -> str:
    """Return ``token``; ConfigurationError, which does not show it, if it cannot be one."""
    if not _TOKEN.fullmatch(token):
        raise ConfigurationError(
            f"{where}: a token has printable characters of ASCII, without blanks"
        )
    if not MIN_TOKEN_CHARACTERS <= len(token) <= MAX_TOKEN_CHARACTERS:
        raise ConfigurationError(
            f"{where}: a token has {MIN_TOKEN_CHARACTERS} to {MAX_TOKEN_CHARACTERS} characters, "
            f"this one has {len(token)}"
        )
    return token


def roles_of_lines(path: Path) -> list[tuple[str, Role | None]]:
    """Return the lines of a token file, each with the role of its token; None for a comment.

    ConfigurationError, which never shows a token, for a file that cannot be used.
    """
    return [(line, None if entry is None else entry.role) for line, entry in _lines(path)]


def _entries(path: Path) -> list[_Entry]:
    entries = [entry for _, entry in _lines(path) if entry is not None]
    if not entries:
        raise ConfigurationError(f"{path}: has no token; {_LINE}")
    if is_open_to_others(path):
        _log.warning("%s: all users of this machine may read the tokens; chmod 600 it", path)
    return entries


def _lines(path: Path) -> list[tuple[str, _Entry | None]]:
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is no text in UTF-8") from None
    return [
        (line, _entry(line, f"{path}: line {number}"))
        for number, line in enumerate(content.splitlines(), 1)
    ]


def _entry(line: str, where: str) -> _Entry | None:
    words = line.split()
    if not words or words[0].startswith("#"):
        return None
    if len(words) != 2 or words[0] not in list(Role):
        raise ConfigurationError(f"{where}: {_LINE}")
    token = require_token(words[1], where)
    return _Entry(Role(words[0]), token, digest_of(token))
