"""A server is guarded as its options say, and shows others the token of a server."""

import pytest

from relaax.configuration.access import begin_access
from relaax.configuration.option_base import AccessOptions
from relaax.errors import ConfigurationError
from relaax.net.access import Role, current_access, file_stamp
from relaax.net.access.process_access import Access, access_while

SERVER, PLAYER = "server-token-0123456789", "player-token-0123456789"


@pytest.fixture(name="path")
def _path(tmp_path, monkeypatch):
    monkeypatch.setattr(file_stamp, "FRESH_S", 0.0)
    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    with access_while(Access()):
        yield path


def test_a_server_without_a_token_of_its_own_does_not_begin(path):
    path.write_text(f"environment {PLAYER}\n")
    with pytest.raises(ConfigurationError, match="has no token for the role server"):
        begin_access(AccessOptions.model_validate({"--auth-token-file": str(path)}))


def test_a_server_goes_on_with_its_token_where_the_file_has_lost_it(path):
    path.write_text(f"server {SERVER}\nenvironment {PLAYER}\n")
    begin_access(AccessOptions.model_validate({"--auth-token-file": str(path)}))
    path.write_text(f"environment {PLAYER}\n")
    assert current_access().tokens.own(Role.SERVER) == SERVER


@pytest.mark.parametrize("option", ["--auth-token-file", "--tls-cert", "--tls-key", "--tls-ca"])
def test_a_file_that_is_missing_is_named_with_its_option_and_where_it_was_looked_for(
    path, tmp_path, monkeypatch, option
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError) as refused:
        begin_access(AccessOptions.model_validate({option: "secrets/missing"}))
    told = str(refused.value)
    assert told.startswith(f"{option}: {tmp_path}/secrets/missing is not there; ")
    assert told.endswith(f"or else in the folder where this was started, {tmp_path}")
