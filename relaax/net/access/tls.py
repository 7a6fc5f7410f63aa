"""TLS: certificates and keys, and the contexts of both ends of a connection."""

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

from relaax.errors import ConfigurationError
from relaax.net.access.file_stamp import FromFiles, is_open_to_others
from relaax.telemetry.throttled_log import of_kind

_Made = TypeVar("_Made")

_log = logging.getLogger(__name__)


class UnusableFiles(ConfigurationError):
    """Files of TLS that cannot be used: those at ``paths``."""

    def __init__(self, message: str, *paths: Path | None) -> None:
        super().__init__(message)
        self.paths = paths


@dataclass(frozen=True)
class TlsFiles:
    """Files in PEM format.

    ``cert`` and ``key`` identify this process; a server needs them. ``ca`` has the authorities that
    must have signed others' certificates; without it those of the system count, and clients need no
    certificate.
    """

    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """All that there are."""
        return [path for path in (self.cert, self.key, self.ca) if path is not None]

    def read(self, path: Path | None) -> bytes | None:
        """Return the content of a file; None for no file. UnusableFiles if it cannot be read."""
        try:
            return None if path is None else path.read_bytes()
        except OSError as error:
            raise UnusableFiles(f"{path}: cannot be read: {error.strerror}", path) from error


def server_context(files: TlsFiles, clients_need_certificates: bool) -> ssl.SSLContext:
    """Return the TLS context of a server; ConfigurationError for unusable files.

    With a CA, a client may show a certificate of it, or has to.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, files)
    if files.ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED if clients_need_certificates else ssl.CERT_OPTIONAL
    return context


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the TLS context of a client; UnusableFiles for unusable files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it verifies the server and its name
    if files.ca is None:
        context.load_default_certs()
    _load(context, files)
    return context


def server_contexts(files: TlsFiles, clients_need_certificates: bool) -> FromFiles[ssl.SSLContext]:
    """Return the context of a server whose files may be replaced while it runs."""
    return shown_by_server(files, lambda: server_context(files, clients_need_certificates))


def shown_by_server(files: TlsFiles, make: Callable[[], _Made]) -> FromFiles[_Made]:
    """Return the result of ``make`` for a server's files, which may be replaced while it runs.

    ConfigurationError for unusable files. Later failures are logged once for each change, and the
    old result is kept. A renewed certificate is logged, too, and a key that others may read.
    """
    made = FromFiles(files.paths, make, _complain, lambda _: _announce(files))
    _warn_of_open_key(files)
    return made


def _warn_of_open_key(files: TlsFiles) -> None:
    if files.key is not None and is_open_to_others(files.key):
        _log.warning(
            "%s: all users of this machine may read this key; chmod 600 it", files.key,
            extra=of_kind("open key", at_once=1),
        )  # fmt: skip


def _announce(files: TlsFiles) -> None:
    _warn_of_open_key(files)
    _log.info(
        "callers are shown the renewed certificate from now on: %s", files.cert,
        extra=of_kind("renewed certificate", at_once=1),
    )  # fmt: skip


def _complain(error: Exception) -> None:
    _log.error("the certificate read before is still shown: %s", error)


def _load(context: ssl.SSLContext, files: TlsFiles) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for path in files.paths:
        files.read(path)  # whose error names the file
    if files.ca is not None:
        try:
            context.load_verify_locations(files.ca)
        except ssl.SSLError as error:
            raise UnusableFiles(
                f"{files.ca}: has no certificates in PEM format ({error.reason})", files.ca
            ) from error
    if files.cert is None:
        return
    try:
        context.load_cert_chain(files.cert, files.key, password=lambda: _ask_for_none(files.key))
    except ssl.SSLError as error:
        raise UnusableFiles(
            f"{files.cert} and {files.key}: are no certificate and its key in PEM format "
            f"({error.reason})",
            files.cert,
            files.key,
        ) from error


def _ask_for_none(key: Path | None) -> NoReturn:
    raise UnusableFiles("a key that is encrypted cannot be used: no one can be asked for it", key)
