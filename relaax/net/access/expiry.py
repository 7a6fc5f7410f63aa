"""When certificates expire."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from relaax.errors import ConfigurationError
from relaax.net.access.tls import TlsFiles

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

#: The use of a certificate.
SERVER, CLIENT, CA = "server", "client", "ca"


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
