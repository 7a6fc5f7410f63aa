"""A private certificate authority: it signs the certificates of one cluster, and no others."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Clocks of machines differ: certificates are valid from a little earlier on.
BEFORE = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Signed:
    """A certificate and its key, in PEM format."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def new(cls, name: str, days: int) -> Self:
        """Return a new one, whose certificate is valid for some days."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _named(name)
        certificate = (
            _begun(subject, subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def read(cls, pem: Signed) -> Self:
        """Return an authority from its files; ValueError if they are damaged."""
        key = serialization.load_pem_private_key(pem.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("its key is of another kind")
        certificate = x509.load_pem_x509_certificate(pem.certificate)
        if certificate.public_key() != key.public_key():
            raise ValueError("key and certificate do not belong together")
        return cls(certificate, key)

    @property
    def pem(self) -> Signed:
        """Its own certificate and key."""
        return Signed(_pem(self._certificate), _key_pem(self._key))

    def sign(self, name: str, hosts: Sequence[str], days: int) -> Signed:
        """Return a new certificate: of a server at ``hosts``, or of a client without hosts.

        A server's certificate is also good for a client: servers call one another.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if hosts:
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = (
            _begun(_named(name), self._certificate.subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_of_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return Signed(_pem(builder.sign(self._key, hashes.SHA256())), _key_pem(key))


def hosts_of(certificate: bytes) -> list[str]:
    """Return the hosts for which a server's certificate in PEM format is good.

    ValueError if it is damaged.
    """
    extensions = x509.load_pem_x509_certificate(certificate).extensions
    try:
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound as error:
        raise ValueError("it names no hosts") from error
    return [str(name.value) for name in names]


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BEFORE)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _of_host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
