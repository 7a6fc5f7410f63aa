"""The token that a client shows: of a file that may be replaced while it is read."""

import pytest

from relaax.address import Address
from relaax.client import access
from relaax.client.access import ClientAccess
from relaax.errors import ConfigurationError

TOKEN, LOCAL = "player-token-0123456789", Address.parse("localhost:7001")


@pytest.fixture(name="later")
def _later(monkeypatch):
    """What happens while a client pauses, in turn."""
    events, clock = [], [0.0]

    def pause(seconds):
        clock[0] += seconds
        if events:
            events.pop(0)()

    monkeypatch.setattr(access.time, "sleep", pause)
    monkeypatch.setattr(access.time, "monotonic", lambda: clock[0])
    return events


@pytest.mark.parametrize("content", [None, "", "player-tok"])
def test_a_file_that_is_just_written_is_read_again(tmp_path, later, content):
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    later += [lambda: None, lambda: path.write_text(f"{TOKEN}\n")]
    assert ClientAccess(token_file=path).token_for(LOCAL) == TOKEN
    assert not later


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "cannot be read"), ("", "printable"), ("short", "characters")]
)
@pytest.mark.usefixtures("later")
def test_a_file_that_has_no_token_for_seconds_is_refused(tmp_path, content, reason):
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=f"token: .*{reason}"):
        ClientAccess(token_file=path).token_for(LOCAL)
