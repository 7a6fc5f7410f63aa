"""The files of TLS that a server shows: who may read its key."""

import logging

import pytest

from relaax.net.access import TlsFiles, file_stamp
from relaax.net.access.tls import server_contexts
from relaax.server.certificates.secrets_folder import SecretsFolder

OPEN = "server.key: all users of this machine may read this key; chmod 600 it"


@pytest.fixture(name="files")
def _files(tmp_path, monkeypatch):
    monkeypatch.setattr(file_stamp, "FRESH_S", 0.0)
    folder = SecretsFolder(tmp_path / "secrets")
    folder.sign(["localhost"], days=1, days_of_authority=1)
    return TlsFiles(folder.path / "server.crt", folder.path / "server.key")


@pytest.mark.usefixtures("log_clock")
def test_a_key_that_all_may_read_is_warned_of_once_by_all_ports(files, caplog):
    files.key.chmod(0o644)
    ports = [server_contexts(files, False) for _ in range(2)]
    for port in ports:
        port.content()
    assert caplog.text.count(OPEN) == 1


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o440])
def test_a_key_that_its_owner_and_group_read_is_not(files, caplog, mode):
    files.key.chmod(mode)
    server_contexts(files, False).content()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_key_that_is_opened_to_all_later_is_warned_of_each_time(files, caplog):
    port = server_contexts(files, False)
    for times in (1, 2):
        files.key.chmod(0o644)
        port.content()
        port.content()
        assert caplog.text.count(OPEN) == times
        files.key.chmod(0o600)
        port.content()
