"""Tokens: what each role may do, files that change, and messages that show no secret."""

import errno
import logging
from pathlib import Path

import pytest

from relaax.errors import ConfigurationError
from relaax.net.access import Right, Role, TokenFile, file_stamp
from relaax.net.access.tokens import digest_of

SERVER, PLAYER, WATCHER = (
    "server-token-0123456789",
    "player-token-0123456789",
    "watch-token-0123456789",
)

LINES = f"# a comment\n\nserver {SERVER}\nenvironment {PLAYER}\n  monitor   {WATCHER}\n"


@pytest.fixture(name="path")
def _path(tmp_path, monkeypatch):
    monkeypatch.setattr(file_stamp, "FRESH_S", 0.0)
    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    path.write_text(LINES)
    return path


def allows(tokens, token, right):
    return bool(token) and tokens.allows_digest(digest_of(token), right)


@pytest.mark.parametrize(
    ("token", "rights"),
    [
        (SERVER, set(Right)), (PLAYER, {Right.PLAY}), (WATCHER, {Right.OBSERVE}),
        (SERVER.encode(), set(Right)), ("", set()), (None, set()), (SERVER[:-1], set()),
        (SERVER + "0", set()), ("server", set()), ("é" * 20, set()), (b"\xff" * 20, set()),
    ],
)  # fmt: skip
def test_a_token_has_the_rights_of_its_role(path, token, rights):
    tokens = TokenFile(path)
    assert {right for right in Right if allows(tokens, token, right)} == rights


@pytest.mark.parametrize(
    ("token", "right", "why"),
    [
        (SERVER, Right.SYNCHRONIZE, None),
        (SERVER[:-1], Right.PLAY, "is not in the --auth-token-file of this server"),
        (WATCHER, Right.PLAY, "is of the role monitor, which may not play environments"),
        (PLAYER, Right.SYNCHRONIZE, "is of the role environment, which may not call servers"),
        (PLAYER, Right.OBSERVE, "is of the role environment, which may not read figures"),
    ],
)
def test_why_a_token_is_refused_is_said_and_the_token_is_not(path, token, right, why):
    refused = TokenFile(path).why_refused(digest_of(token), right)
    assert refused == (why and f"the token that was shown {why}")


def test_all_of_a_role_are_accepted_and_the_second_is_shown(path):
    others = [f"{SERVER}-{number}" for number in range(3)]
    tokens = TokenFile(path)
    assert tokens.own(Role.SERVER) == SERVER
    path.write_text("".join(f"server {token}\n" for token in others))
    assert tokens.own(Role.SERVER) == others[1]
    assert {tokens.role_of(token) for token in others} == {Role.SERVER}
    assert tokens.role_of(SERVER) is None


def test_a_changed_file_counts_and_an_old_token_does_not(path):
    tokens = TokenFile(path)
    assert allows(tokens, PLAYER, Right.PLAY)
    path.write_text(f"server {SERVER}\nenvironment {PLAYER[::-1]}\n")
    assert not allows(tokens, PLAYER, Right.PLAY)
    assert allows(tokens, PLAYER[::-1], Right.PLAY)


def test_a_token_that_was_shown_is_known_by_its_digest(path):
    tokens = TokenFile(path)
    digest = digest_of(PLAYER)
    assert PLAYER.encode() not in digest
    assert tokens.allows_digest(digest, Right.PLAY)
    assert not tokens.allows_digest(digest, Right.SYNCHRONIZE)
    assert not tokens.allows_digest(digest_of(""), Right.PLAY)
    path.write_text(f"server {SERVER}\n")
    assert not tokens.allows_digest(digest, Right.PLAY)


def test_the_generation_is_another_one_when_the_file_was_read_again(path):
    tokens = TokenFile(path)
    found = [tokens.generation(), tokens.generation()]
    path.write_text(f"server {SERVER}\n")
    found += [tokens.generation(), tokens.generation()]
    path.write_text("nonsense")
    found.append(tokens.generation())
    assert found[0] == found[1] != found[2]
    assert found[2] == found[3] == found[4]


def test_a_token_that_was_written_a_moment_ago_is_not_refused(path, monkeypatch):
    monkeypatch.setattr(file_stamp, "FRESH_S", 3600.0)
    monkeypatch.setattr(file_stamp, "LOOK_PAUSE_S", 0.0)
    tokens = TokenFile(path)
    assert tokens.role_of(PLAYER[::-1]) is None
    path.write_text(f"{LINES}environment {PLAYER[::-1]}\n")
    assert tokens.role_of(PLAYER[::-1]) is Role.ENVIRONMENT


def test_a_file_that_was_read_anew_is_logged_once_and_without_a_token(path, caplog):
    caplog.set_level(logging.INFO)
    tokens = TokenFile(path)
    tokens.role_of(PLAYER)
    assert not caplog.text
    path.write_text(f"{LINES}environment {PLAYER[::-1]}\n")
    for _ in range(3):
        tokens.role_of(PLAYER)
    said = f"the tokens in {path} count from now on: 1 of server, 2 of environment, 1 of monitor"
    assert [record.message for record in caplog.records] == [said]
    path.write_text(f"server {SERVER}\n")
    tokens.role_of(PLAYER)
    assert caplog.records[-1].message.endswith("count from now on: 1 of server")


@pytest.mark.parametrize("content", [None, "", "nonsense", f"king {SERVER}\n"])
def test_a_file_that_is_damaged_later_leaves_the_tokens_as_they_were(path, content, caplog):
    tokens = TokenFile(path)
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    for _ in range(3):
        assert allows(tokens, PLAYER, Right.PLAY)
    assert caplog.text.count("the tokens read before still hold") == 1


def test_a_file_that_loses_the_role_of_its_process_leaves_the_tokens_as_they_were(path, caplog):
    tokens = TokenFile(path, shows=Role.SERVER)
    path.write_text(f"environment {PLAYER[::-1]}\n")
    assert tokens.own(Role.SERVER) == SERVER
    assert allows(tokens, PLAYER, Right.PLAY)
    assert "tokens: has no token for the role server" in caplog.text
    with pytest.raises(ConfigurationError, match="has no token for the role server"):
        TokenFile(path, shows=Role.SERVER)
    path.write_text(f"server {SERVER[::-1]}\n")
    assert tokens.own(Role.SERVER) == SERVER[::-1]


def test_a_process_that_shows_no_token_takes_a_file_without_its_role(path):
    tokens = TokenFile(path)
    path.write_text(f"environment {PLAYER[::-1]}\n")
    assert allows(tokens, PLAYER[::-1], Right.PLAY)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.EIO])
def test_a_changed_file_that_cannot_be_read_at_once_is_read_later(
    path, monkeypatch, caplog, number
):
    tokens = TokenFile(path)
    path.write_text(f"server {SERVER}\nenvironment {PLAYER[::-1]}\n")

    def fail(*_, **__):
        raise OSError(number, "not now")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", fail)
        for _ in range(3):
            assert allows(tokens, PLAYER, Right.PLAY)
    assert caplog.text.count("the tokens read before still hold") == 1
    assert not allows(tokens, PLAYER, Right.PLAY)
    assert allows(tokens, PLAYER[::-1], Right.PLAY)


def test_each_damage_is_logged_once_also_where_it_is_the_same_again(path, caplog):
    tokens = TokenFile(path)
    aside = path.with_name("aside")
    for _ in range(2):
        path.rename(aside)
        tokens.role_of(PLAYER)
        aside.rename(path)
        tokens.role_of(PLAYER)
    assert caplog.text.count("the tokens read before still hold") == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "has no token; a line is ROLE TOKEN"),
        ("# nothing\n", "has no token"),
        (f"{SERVER}\n", "line 1: a line is ROLE TOKEN, with a role of server, environment"),
        (f"server {SERVER}\nking {PLAYER}\n", "line 2: a line is ROLE TOKEN"),
        (f"server {SERVER} more\n", "line 1: a line is ROLE TOKEN"),
        ("server short\n", "line 1: a token has 16 to 512 characters, this one has 5"),
        (f"server {'x' * 513}\n", "has 16 to 512 characters, this one has 513"),
        ("server ünicode-0123456789\n", "printable characters of ASCII"),
    ],
)
def test_a_file_of_no_use_is_refused_without_showing_it(path, content, reason):
    path.write_text(content)
    with pytest.raises(ConfigurationError) as refused:
        TokenFile(path)
    assert reason in str(refused.value)
    for secret in (SERVER, PLAYER, "x" * 513, "ünicode"):
        assert secret not in str(refused.value)


def test_a_file_that_is_missing_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="tokens: cannot be read: No such file"):
        TokenFile(tmp_path / "tokens")


def test_a_file_that_all_may_read_is_warned_of(path, caplog):
    with caplog.at_level(logging.WARNING):
        TokenFile(path)
        assert not caplog.text
        path.chmod(0o644)
        TokenFile(path)
    assert "all users of this machine may read the tokens" in caplog.text


def test_no_representation_shows_a_token(path):
    tokens = TokenFile(path)
    assert SERVER not in repr(tokens) + str(vars(tokens)) + repr(tokens._file.content())  # noqa: SLF001 - as a debugger shows it
