"""Warns in time that certificates expire."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from relaax.errors import ConfigurationError
from relaax.net.access import TlsFiles
from relaax.net.access.file_stamp import FromFiles
from relaax.telemetry.operators.families import Metric, gauges

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_log = logging.getLogger(__name__)

#: The use of a certificate.
SERVER, CLIENT, CA = "server", "client", "ca"

DAY_S = 24 * 3600.0

#: With less left, it is said once a day.
WARN_S = 14 * DAY_S

#: How often it is looked.
LOOK_S = 60.0


class Certificates:
    """The certificates of this process, if it has any: their figures, and a warning once a day.

    A thread of its own looks at them until ``close``; ``clock`` returns seconds since 1970.
    """

    def __init__(self, files: TlsFiles | None, clock: Callable[[], float] = time.time) -> None:
        self._files = files
        self._clock = clock
        self._warned_at: dict[str, float] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        if files is None:
            return
        try:
            self._expiry = FromFiles(files.paths, lambda: expiry_by_use(files), _complain)
        except ConfigurationError as error:
            _complain(error)
            return
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)
        self._thread.start()

    def figures(self) -> Iterable[Metric]:
        """Return figures for Prometheus, if there are certificates."""
        if self._thread is None:
            return []
        means = "When a certificate expires, in seconds since 1970"
        return [
            gauges("certificate_expires_timestamp_seconds", means, "use", self._expiry.content())
        ]

    def warn_if_due(self) -> None:
        """Log certificates that expire soon, unless that was logged within a day."""
        now = self._clock()
        for path, ends_at in self._ends_by_path().items():
            is_due = now - self._warned_at.get(path, float("-inf")) >= DAY_S
            if ends_at - now >= WARN_S:
                self._warned_at.pop(path, None)
            elif is_due:
                self._warned_at[path] = now
                _warn(path, ends_at, now)

    def close(self) -> None:
        """Look at nothing any more."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _ends_by_path(self) -> dict[str, float]:
        """Return when each file expires: one of two uses is warned of once."""
        if self._files is None:
            return {}
        return {
            str(self._files.ca if use == CA else self._files.cert): ends_at
            for use, ends_at in self._expiry.content().items()
        }

    def _run(self) -> None:
        while True:
            self.warn_if_due()
            if self._closed.wait(LOOK_S):
                return


def _warn(path: str, ends_at: float, now: float) -> None:
    day = datetime.fromtimestamp(ends_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if ends_at <= now:
        _log.error("%s: this certificate has expired, %s: renew it", path, day)
    else:
        days = int((ends_at - now) / DAY_S)
        _log.warning("%s: this certificate expires in %d days, %s: renew it", path, days, day)


def _complain(error: Exception) -> None:
    _log.error("it is not known when certificates expire: %s", error)


def expiry_by_use(files: TlsFiles) -> dict[str, float]:
    """Return when the certificates of these files expire, by use; in seconds since 1970.

    ``server`` and ``client`` are the uses of ``files.cert``, with the certificates behind it: the
    first to expire counts. ``ca`` is of ``files.ca``: of several there, the signer of
    ``files.cert``, and the last to expire counts. Uses without a file are left out.
    ConfigurationError for files that cannot be read.
    """
    chain, authorities = _certificates(files, "cert"), _certificates(files, "ca")
    expiry = {}
    if chain:
        ends_at = min(map(_ends_at, chain))
        expiry = dict.fromkeys(_uses(chain[0]), ends_at)
    if authorities:
        signers = {certificate.issuer for certificate in chain}
        signing = [each for each in authorities if each.subject in signers]
        expiry[CA] = max(map(_ends_at, signing or authorities))
    return expiry


def _certificates(files: TlsFiles, name: str) -> "Sequence[Certificate]":
    # Here, since it takes 8 MB: most processes speak no TLS.
    from cryptography import x509

    path = getattr(files, name)
    pem = files.read(path)
    try:
        return [] if pem is None else x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise ConfigurationError(f"{path}: has no certificates in PEM format ({error})") from error


def _ends_at(certificate: "Certificate") -> float:
    return certificate.not_valid_after_utc.timestamp()


def _uses(certificate: "Certificate") -> list[str]:
    from cryptography.x509 import ExtendedKeyUsage, ExtensionNotFound
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        allowed = certificate.extensions.get_extension_for_class(ExtendedKeyUsage).value
    except ExtensionNotFound:  # then it is good for all
        return [SERVER, CLIENT]
    uses = {SERVER: ExtendedKeyUsageOID.SERVER_AUTH, CLIENT: ExtendedKeyUsageOID.CLIENT_AUTH}
    return [use for use, oid in uses.items() if oid in allowed]
