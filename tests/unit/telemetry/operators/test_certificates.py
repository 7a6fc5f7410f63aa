"""Certificates that expire are shown to Prometheus, and logged once a day."""

import datetime
import logging
import time
from contextlib import closing

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from processes import wait_for

from relaax.errors import ConfigurationError
from relaax.net.access import TlsFiles, file_stamp
from relaax.server.certificates.secrets_folder import SecretsFolder
from relaax.telemetry.operators import certificates
from relaax.telemetry.operators.certificates import DAY_S, WARN_S, Certificates, expiry_by_use

#: A second more or less, for the time that passes while certificates are made.
ABOUT_S = 60


@pytest.fixture(name="path", autouse=True)
def _path(tmp_path, monkeypatch):
    monkeypatch.setattr(file_stamp, "FRESH_S", 0.0)
    monkeypatch.setattr(certificates, "LOOK_S", 0.01)
    sign(tmp_path / "secrets", 365, 3650)
    return tmp_path / "secrets"


def sign(path, days, days_of_authority=3650):
    SecretsFolder(path).sign([], days, days_of_authority)


def files_of(path, name="server"):
    return TlsFiles(path / f"{name}.crt", path / f"{name}.key", path / "ca.crt")


def made(name, issuer, days, *uses):
    """A certificate of our own in PEM format, which counts for its dates and uses alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject, signer = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, issuer)
    )
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=400))
        .not_valid_after(now + datetime.timedelta(days=days))
    )
    if uses:
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    signed = builder.sign(key, hashes.SHA256())
    return signed.public_bytes(Encoding.PEM)


def days_left(files):
    left = {use: at - time.time() for use, at in expiry_by_use(files).items()}
    return {use: round(seconds / DAY_S) for use, seconds in left.items()}


def test_certificates_of_the_command_expire_as_printed(path):
    assert days_left(files_of(path)) == {"server": 365, "client": 365, "ca": 3650}
    assert days_left(files_of(path, "environment")) == {"client": 365, "ca": 3650}
    assert days_left(TlsFiles(ca=path / "ca.crt")) == {"ca": 3650}
    assert days_left(TlsFiles()) == {}


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ([], {"server", "client"}),
        ([ExtendedKeyUsageOID.SERVER_AUTH], {"server"}),
        ([ExtendedKeyUsageOID.CLIENT_AUTH], {"client"}),
    ],
)
def test_a_certificate_counts_for_its_uses(tmp_path, uses, expected):
    path = tmp_path / "own.crt"
    path.write_bytes(made("own", "signer", 30, *uses))
    assert set(days_left(TlsFiles(cert=path))) == expected


def test_of_a_chain_the_first_to_expire_counts_and_of_authorities_the_last_that_signs(tmp_path):
    chain, authorities = tmp_path / "chain.crt", tmp_path / "ca.crt"
    chain.write_bytes(made("own", "between", 30) + made("between", "signer", 20))
    authorities.write_bytes(
        made("signer", "signer", -3) + made("signer", "signer", 50) + made("other", "other", 90)
    )
    files = TlsFiles(cert=chain, ca=authorities)
    assert days_left(files) == {"server": 20, "client": 20, "ca": 50}
    assert days_left(TlsFiles(ca=authorities)) == {"ca": 90}


@pytest.mark.parametrize("content", [b"", b"no certificate", None])
def test_a_file_without_certificates_is_named(path, content):
    if content is None:
        (path / "server.crt").unlink()
    else:
        (path / "server.crt").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"server\.crt: "):
        expiry_by_use(files_of(path))


def samples(watched):
    return {
        (sample.name, sample.labels["use"]): sample.value
        for family in watched.figures()
        for sample in family.samples
    }


def test_figures_follow_the_files(path):
    name = "relaax_certificate_expires_timestamp_seconds"
    with closing(Certificates(files_of(path))) as watched:
        for days in (365, 20):
            sign(path, days)
            found = samples(watched)
            assert set(found) == {(name, use) for use in ("server", "client", "ca")}
            expected = time.time() + days * DAY_S
            assert found[name, "server"] == pytest.approx(expected, abs=ABOUT_S)


def test_without_tls_there_are_no_figures():
    with closing(Certificates(None)) as watched:
        assert list(watched.figures()) == []


def test_a_certificate_that_expires_soon_is_logged_once_a_day_until_it_is_renewed(path, caplog):
    """On the thread, whose clock is set ahead; a certificate of two uses is said once."""
    ahead_s = [0.0]
    looked = []

    def clock():
        looked.append(ahead_s[0])
        return time.time() + ahead_s[0]

    def look_on(seconds):
        ahead_s[0] += seconds
        looked.clear()
        wait_for(lambda: looked.count(ahead_s[0]) > 2, "two more looks")

    def said():
        return [each.getMessage().split(": ", 1)[1] for each in caplog.records]

    caplog.set_level(logging.WARNING)
    with closing(Certificates(files_of(path), clock)):
        look_on(365 * DAY_S - WARN_S - ABOUT_S)
        assert said() == []
        look_on(2 * ABOUT_S)
        (first,) = said()
        assert first.startswith("this certificate expires in 13 days, 20")
        look_on(DAY_S - 3 * ABOUT_S)
        assert said() == [first]
        look_on(3 * ABOUT_S)
        assert len(said()) == 2
        look_on(14 * DAY_S)
        assert said()[2].startswith("this certificate has expired, 20")
        assert caplog.records[2].levelno == logging.ERROR
        sign(path, 3650 // 2)
        look_on(2 * DAY_S)
        assert len(said()) == 3


def test_files_that_cannot_be_read_any_more_keep_the_figures(path, caplog):
    with closing(Certificates(files_of(path))) as watched:
        before = samples(watched)
        (path / "server.crt").write_bytes(b"nothing")
        assert samples(watched) == before
    assert "it is not known when certificates expire: " in caplog.text


def test_files_that_say_nothing_of_it_do_not_keep_a_server_from_starting(path, caplog):
    (path / "server.crt").write_bytes(b"nothing")
    with closing(Certificates(files_of(path))) as watched:
        assert list(watched.figures()) == []
    assert "it is not known when certificates expire: " in caplog.text
