"""What ``relaax-certificates`` writes: what it is good for, who may read it, how it is renewed."""

import errno
import os
import ssl
import stat

import pytest

from relaax.errors import ConfigurationError
from relaax.net.access import Role, TokenFile
from relaax.net.access.tls import TlsFiles, client_context, server_context
from relaax.server.certificates.main import main
from relaax.server.certificates.secrets_folder import SecretsFolder


@pytest.fixture(name="folder")
def _folder(tmp_path):
    folder = SecretsFolder(tmp_path / "secrets")
    assert folder.sign(["rlx.example.com", "10.0.0.5", "*.cluster.local"], 365, 3650)
    assert folder.write_tokens(renew=False)
    return folder


def files(folder, name):
    path = folder.path
    return TlsFiles(path / f"{name}.crt", path / f"{name}.key", path / "ca.crt")


def shaken(server, client, name):
    """Let both ends shake hands in memory; return the client's end."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    ends[0].write(b"hello")
    assert ends[1].read() == b"hello"
    return ends[0]


@pytest.mark.parametrize(
    "name", ["localhost", "127.0.0.1", "rlx.example.com", "10.0.0.5", "ps-0.cluster.local"]
)
def test_a_server_is_good_for_its_hosts(folder, name):
    shaken(
        server_context(files(folder, "server"), True), client_context(files(folder, "server")), name
    )
    shaken(
        server_context(files(folder, "server"), True),
        client_context(files(folder, "environment")),
        name,
    )


@pytest.mark.parametrize("name", ["example.com", "10.0.0.6", "a.b.cluster.local"])
def test_it_is_good_for_no_others(folder, name):
    server = server_context(files(folder, "server"), True)
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        shaken(server, client_context(files(folder, "environment")), name)


def test_an_environment_cannot_pretend_to_be_a_server(folder):
    server = server_context(files(folder, "environment"), True)
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        shaken(server, client_context(files(folder, "environment")), "localhost")


def test_a_certificate_of_another_authority_is_not_accepted(folder, tmp_path):
    other = SecretsFolder(tmp_path / "other")
    other.sign([], 365, 3650)
    server = server_context(files(other, "server"), False)
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(server, client_context(files(folder, "environment")), "localhost")


def test_secrets_are_the_owners_alone(folder):
    for path in folder.path.iterdir():
        is_secret = path.suffix != ".crt"
        assert stat.S_IMODE(path.stat().st_mode) == (0o600 if is_secret else 0o644), path
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_a_second_run_keeps_authority_and_tokens_and_signs_anew(folder):
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    assert not folder.sign(["new.example.com"], 30, 3650)
    assert not folder.write_tokens(renew=False)
    after = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"server.crt", "server.key", "environment.crt", "environment.key"}
    shaken(
        server_context(files(folder, "server"), True),
        client_context(files(folder, "environment")),
        "new.example.com",
    )


def test_hosts_stay_when_certificates_are_renewed(folder):
    before = folder.hosts()
    assert before
    folder.sign([], 30, 3650)
    assert folder.hosts() == before
    folder.sign(["new.example.com", "10.0.0.9"], 30, 3650)
    assert folder.hosts() == [*before, "new.example.com", "10.0.0.9"]


def test_a_servers_certificate_that_is_damaged_is_not_replaced(folder):
    (folder.path / "server.crt").write_text("nonsense")
    with pytest.raises(ConfigurationError, match="its hosts cannot be read"):
        folder.sign([], 365, 3650)
    assert (folder.path / "server.crt").read_text() == "nonsense"


def test_a_key_of_another_authority_is_refused(folder, tmp_path):
    other = SecretsFolder(tmp_path / "other")
    other.sign([], 365, 3650)
    (folder.path / "ca.key").write_bytes((other.path / "ca.key").read_bytes())
    with pytest.raises(ConfigurationError, match="key and certificate do not belong together"):
        folder.sign([], 365, 3650)


def test_a_renewed_token_is_shown_when_the_next_one_is_there(folder):
    def listed():
        lines = (folder.path / "tokens").read_text().splitlines()
        return [line.split()[1] for line in lines if line.startswith("environment ")]

    first = listed()
    assert len(first) == 1
    shown = []
    for count in (2, 3, 3):
        before = listed()
        assert folder.write_tokens(renew=True)
        assert len(listed()) == count
        assert listed()[1:] == before[:2]
        shown.append(TokenFile(folder.path / "tokens").own(Role.ENVIRONMENT))
        assert (folder.path / "environment.token").read_text() == f"{shown[-1]}\n"
        assert shown[-1] == before[0]


@pytest.mark.parametrize("role", Role)
def test_a_token_counts_until_tokens_have_been_renewed_three_times_since_it_was_made(
    folder, monkeypatch, capsys, role
):
    path, made = folder.path / "tokens", []
    for renewals in range(6):
        if renewals:
            assert "renewed three times since it was made" in run(
                monkeypatch, capsys, folder.path, "--renew-tokens"
            )[0].replace("\n", " ")
        lines = [line.split() for line in path.read_text().splitlines()]
        made.append(next(line[1] for line in lines if line[0] == role))
        counting = [token for token in made if TokenFile(path).role_of(token) is role]
        assert counting == made[-3:]


def test_renewing_keeps_tokens_and_comments_however_they_are_written(folder):
    path = folder.path / "tokens"
    tokens = {role: f"{role.value}-token-written-by-hand" for role in Role}
    path.write_text(
        f"# of the cluster\n\n  server\t{tokens[Role.SERVER]}\n# of people\n"
        f"\tmonitor   {tokens[Role.MONITOR]}\n\tenvironment {tokens[Role.ENVIRONMENT]}"
    )
    assert folder.write_tokens(renew=True)
    renewed = TokenFile(path)
    assert {role: renewed.own(role) for role in Role} == tokens
    lines = path.read_text().splitlines()
    assert lines[:2] == ["# of the cluster", ""]
    assert lines.index("# of people") < lines.index(f"\tmonitor   {tokens[Role.MONITOR]}")
    assert len(lines) == 9


def test_renewing_refuses_a_file_that_servers_refuse_and_leaves_it(folder):
    path = folder.path / "tokens"
    path.write_text("server short\n")
    with pytest.raises(ConfigurationError, match="line 1: a token has 16 to 512 characters"):
        folder.write_tokens(renew=True)
    assert path.read_text() == "server short\n"


def test_an_authority_that_is_damaged_is_not_replaced(folder):
    (folder.path / "ca.key").unlink()
    before = (folder.path / "ca.crt").read_bytes()
    with pytest.raises(ConfigurationError, match="put both of its files back"):
        folder.sign([], 365, 3650)
    assert (folder.path / "ca.crt").read_bytes() == before


def test_the_command_prints_the_next_steps(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["relaax-certificates", str(tmp_path / "s"), "a.example.com"])
    assert main() == 0
    said = capsys.readouterr().out
    assert f"--auth-token-file: {tmp_path}/s/tokens" in said
    assert f"export RELAAX_TOKEN_FILE={tmp_path}/s/environment.token" in said
    for path in (tmp_path / "s").glob("*.token"):
        assert path.read_text().strip() not in said


def run(monkeypatch, capsys, *words):
    """Run the command; return what it says, and what of that on the standard error."""
    monkeypatch.setattr("sys.argv", ["relaax-certificates", *map(str, words)])
    assert main() == 0
    said = capsys.readouterr()
    return said.out + said.err, said.err


@pytest.mark.parametrize("renewals", [0, 1, 3])
@pytest.mark.parametrize("role", [Role.ENVIRONMENT, Role.MONITOR])
def test_a_stolen_token_whose_line_was_deleted_is_noticed_until_tokens_are_renewed(
    folder, monkeypatch, capsys, renewals, role
):
    for _ in range(renewals):
        folder.write_tokens(renew=True)
    path, file = folder.path / "tokens", folder.path / f"{role.value}.token"
    assert run(monkeypatch, capsys, folder.path)[1] == ""
    stolen = file.read_text().strip()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if stolen not in line))
    said, warned = run(monkeypatch, capsys, folder.path)
    assert warned.startswith(f"{file}: servers refuse this token, whose line is not in {path} any")
    assert f"run relaax-certificates {folder.path} --renew-tokens" in warned
    assert stolen not in said
    assert run(monkeypatch, capsys, folder.path, "--renew-tokens")[1] == ""
    assert run(monkeypatch, capsys, folder.path)[1] == ""
    tokens = TokenFile(path)
    assert tokens.role_of(stolen) is None
    assert tokens.role_of(file.read_text().strip()) is role


def test_a_token_with_another_role_than_its_file_is_noticed(folder, monkeypatch, capsys):
    environment = (folder.path / "environment.token").read_text()
    (folder.path / "monitor.token").write_text(environment)
    warned = run(monkeypatch, capsys, folder.path)[1]
    assert warned.startswith(f"{folder.path}/monitor.token: servers refuse this token")
    assert environment.strip() not in warned


def test_a_file_for_clients_that_was_taken_away_is_not_missed(folder, monkeypatch, capsys):
    (folder.path / "monitor.token").unlink()
    assert run(monkeypatch, capsys, folder.path)[1] == ""


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["höst.example"], "written as xn--"),
        (["a b"], "a name such as rlx.example.com, or an address, is needed, not 'a b'"),
        (["a..b"], "is needed, not 'a..b'"),
        (["10.0.0.5/8"], "is needed"),
        ([f"{'x' * 64}.example.com"], "is needed"),
        (["--days", "9999999"], "at most 36500 days are possible, not 9999999"),
        (["--days", "0"], "a whole number of at least 1 is needed"),
    ],
)
def test_the_command_refuses_names_that_no_certificate_can_have(
    tmp_path, monkeypatch, capsys, words, reason
):
    monkeypatch.setattr("sys.argv", ["relaax-certificates", str(tmp_path / "s"), *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("host", ["xn--hst-sna.example", "10.0.0.5", "::1", "*.a.b", "ps_0", "a"])
def test_the_command_takes_names_and_addresses(tmp_path, monkeypatch, capsys, host):
    monkeypatch.setattr(
        "sys.argv", ["relaax-certificates", str(tmp_path / "s"), host, "--days", "36500"]
    )
    assert main() == 0
    assert "certificates and tokens are in" in capsys.readouterr().out


def test_a_key_is_replaced_only_when_its_certificate_has_been_written(folder, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.path.glob("server.*")}
    open_ = os.open

    def fails_for_certificates(path, flags, mode=0o777):
        if str(path).endswith(".crt"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return open_(path, flags, mode)

    monkeypatch.setattr(os, "open", fails_for_certificates)
    with pytest.raises(ConfigurationError, match=r"server\.crt: cannot be written: No space"):
        folder.sign([], 365, 3650)
    assert before == {path.name: path.read_bytes() for path in folder.path.glob("server.*")}


def test_a_folder_that_others_may_look_into_is_warned_of_and_left_as_it_is(tmp_path, caplog):
    path = tmp_path / "s"
    SecretsFolder(path)
    assert not caplog.text
    path.chmod(0o755)
    SecretsFolder(path)
    assert "others may look into this folder of secrets; chmod 700 it" in caplog.text
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
