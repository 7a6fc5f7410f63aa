"""Who may use a training: TLS, tokens and roles, on every port of every process."""

import contextlib
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from functools import partial

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from operators import ask, parsed
from processes import COMMANDS, SMALL_SAC, Process, Training, free_port, wait_for
from worker_modes import IN_BOTH_MODES, SHARED

from relaax.address import Address
from relaax.algorithm_base import NewValues
from relaax.client import Backoff, Client, Failure
from relaax.client.transport import ClientAccess, TcpTransport
from relaax.errors import BridgeError, ParameterServerAway
from relaax.net.access import Access, Role, TlsFiles, TokenFile
from relaax.net.access.process_access import access_while
from relaax.net.access.tls import client_context
from relaax.parameters import Bridge
from relaax.protocol.binary import ErrorCode
from relaax.replay.client.stub import ReplayStub
from relaax.server.certificates.secrets_folder import SecretsFolder

pytestmark = pytest.mark.integration

#: What a guarded training refuses over RLX until it is asked how much that was.
REFUSED_OVER_RLX = 5

WRONG = "a-wrong-token-of-some-length"

#: Longer than servers take to read the file of tokens again, and to look at their connections.
READ_AGAIN_S = 4.0

#: Of a client that plays as a simulator does, in real time.
STEP_S = 0.01

UPDATES = "relaax_learner_updates_total"


class Guarded:
    """A training whose ports ask for certificates and tokens."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.folder = training.directory / "secrets"
        subprocess.run(
            [COMMANDS / "relaax-certificates", self.folder], check=True, capture_output=True
        )
        self.replay_url = f"127.0.0.1:{free_port()}"
        self.ports = {
            name: f"127.0.0.1:{free_port()}"
            for name in ("parameter-server", "replay-server", "learner", "rlx-server")
        }
        training.access = {
            "auth-token-file": str(self.folder / "tokens"),
            "tls-cert": str(self.folder / "server.crt"),
            "tls-key": str(self.folder / "server.key"),
            "tls-ca": str(self.folder / "ca.crt"),
        }
        self.configure()

    def configure(self, **access: object) -> None:
        """Write the YAML file, with these options of the section ``access``, too."""
        self.training.access.update(access)
        self.training.configure(
            {**SMALL_SAC, "state_size": [3]},
            *({"http-bind": self.ports[name]} for name in ("parameter-server", "rlx-server")),
            learner={"http-bind": self.ports["learner"], "replay-servers": [self.replay_url]},
            replay_server={"http-bind": self.ports["replay-server"]},
        )

    def start(self) -> list[Process]:
        """Start all servers."""
        return [
            self.training.start_parameter_server(),
            self.training.start_replay_server(self.replay_url),
            self.training.start_learner(),
            self.training.start_rlx_server(),
        ]

    def files(self, name: str) -> TlsFiles:
        cert, key = (self.folder / f"{name}.{end}" for end in ("crt", "key"))
        return TlsFiles(cert, key, self.folder / "ca.crt")

    def token(self, role: Role) -> str:
        return TokenFile(self.folder / "tokens").own(role)

    def client(self, token: str | None, files: TlsFiles | None) -> Client:
        """Return a client that is not patient."""
        access = ClientAccess(token=token, tls=files)
        return Client(self.training.rlx_server_url, transport=TcpTransport(access), timeout_s=20)

    def ask(self, port: str, path: str, token: str | None = None) -> tuple[int, str]:
        """Ask for a page of operators over TLS; return status and text."""
        return self.ask_at(self.ports[port], path, token)

    def ask_at(self, address: str, path: str, token: str | None = None) -> tuple[int, str]:
        """Ask for it at an address."""
        request = urllib.request.Request(f"https://{address}{path}")
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        context = client_context(TlsFiles(ca=self.folder / "ca.crt"))
        try:
            with urllib.request.urlopen(  # noqa: S310 - https, above
                request, context=context, timeout=20
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture(name="guarded")
def _guarded(training: Training) -> Guarded:
    return Guarded(training)


@pytest.fixture(name="environments_know")
def _environments_know(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = guarded.folder
    for name, file in (
        ("TOKEN_FILE", "environment.token"), ("TLS_CA", "ca.crt"),
        ("TLS_CERT", "environment.crt"), ("TLS_KEY", "environment.key"),
    ):  # fmt: skip
        monkeypatch.setenv(f"RELAAX_{name}", str(folder / file))


@IN_BOTH_MODES
@pytest.mark.usefixtures("environments_know")
def test_a_guarded_training_goes_on_and_tells_strangers_nothing(guarded: Guarded) -> None:
    training = guarded.training
    guarded.start()
    environments = training.start_environments(1, env="Pendulum-v1", is_paced=True)
    environments.says("episodes")
    _wait_for_updates(guarded, 0)
    _require_nothing_over_rlx(guarded)
    _require_nothing_over_grpc(guarded)
    _require_no_line_of_a_stranger(guarded)
    _require_nothing_over_http(guarded)
    _require_no_secrets_shown(guarded)


def _require_nothing_over_rlx(guarded: Guarded) -> None:
    environment, server = guarded.files("environment"), guarded.files("server")
    for token, files, reason in (
        (None, environment, "no token was shown"),
        (WRONG, environment, "is not in the --auth-token-file of this server"),
        (guarded.token(Role.MONITOR), environment, "is of the role monitor, which may not play"),
        (guarded.token(Role.ENVIRONMENT), TlsFiles(ca=server.ca), "has shown none"),
        (guarded.token(Role.ENVIRONMENT), None, "this port speaks TLS, and the client does not"),
    ):
        with guarded.client(token, files) as client, pytest.raises(Failure) as failed:
            client.init([0.0, 0.0, 0.0])
        assert failed.value.code == ErrorCode.ACCESS
        assert failed.value.is_final
        assert reason in failed.value.message
    with guarded.client(guarded.token(Role.ENVIRONMENT), environment) as client:
        assert client.init([0.0, 0.0, 0.0]) is not None


def _require_nothing_over_grpc(guarded: Guarded) -> None:
    environments = guarded.training.directory / "as-an-environment"
    environments.write_text(f"server {guarded.token(Role.ENVIRONMENT)}\n")  # what it would show
    environments.chmod(0o600)
    for tokens, reason in (
        (None, "no token was shown"),
        (TokenFile(environments), "is of the role environment, which may not call servers"),
    ):
        with access_while(Access(tls=guarded.files("server"), tokens=tokens)):
            bridge = Bridge(guarded.training.parameter_server_url)
            for call in (
                bridge.get_values,
                bridge.phase,
                bridge.increment_global_t,
                partial(bridge.push, NewValues(np.zeros(3, np.float32), 1)),
            ):
                with pytest.raises(BridgeError, match=reason):
                    call()
            bridge.close()
            replay = ReplayStub(guarded.replay_url)
            with pytest.raises(BridgeError, match=reason):
                replay.describe()
            replay.close()
    with _channel(guarded, guarded.files("server")) as channel:
        names = reflection_pb2.ServerReflectionRequest(list_services="")
        reflected = reflection_pb2_grpc.ServerReflectionStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            list(reflected.ServerReflectionInfo(iter([names]), timeout=20))
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as refused:
            health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    # Without a certificate, not even the token of a server helps.
    with access_while(
        Access(
            tls=TlsFiles(ca=guarded.folder / "ca.crt"), tokens=TokenFile(guarded.folder / "tokens")
        )
    ):
        bridge = Bridge(guarded.training.parameter_server_url, retry_for_s=0.5)
        with pytest.raises(ParameterServerAway):
            bridge.get_values()
        bridge.close()


def _require_no_line_of_a_stranger(guarded: Guarded) -> None:
    """Ask for a name that no server has, and that would be a line of its own in a log."""
    context = ssl.create_default_context(cafile=str(guarded.folder / "ca.crt"))
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    place = Address.parse(guarded.training.parameter_server_url)
    with (
        socket.create_connection((place.host, place.port), 20) as sock,
        contextlib.suppress(OSError),  # TLS 1.3 says after the handshake what it lacks
        context.wrap_socket(sock, server_hostname="x\nFORGED") as connection,
    ):
        connection.recv(1)
    answer = guarded.ask("parameter-server", "/metrics", guarded.token(Role.MONITOR))
    begun, proved = (
        parsed(answer[1])["relaax_grpc_connections_total", how_far]
        for how_far in ("begun", "proved")
    )
    assert 0 < proved < begun
    assert not any("FORGED" in process.output() for process in guarded.training.processes)


def _channel(guarded: Guarded, files: TlsFiles, url: str | None = None) -> grpc.Channel:
    """Return a channel with a connection of its own."""
    credentials = grpc.ssl_channel_credentials(
        *(files.read(file) for file in (files.ca, files.key, files.cert))
    )
    options = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.secure_channel(url or guarded.training.parameter_server_url, credentials, options)


def _require_nothing_over_http(guarded: Guarded) -> None:
    for port in guarded.ports:
        for token in (None, guarded.token(Role.ENVIRONMENT), WRONG):
            status, text = guarded.ask(port, "/metrics", token)
            assert status == 401
            assert "relaax" not in text.lower()
        status, text = guarded.ask(port, "/metrics", guarded.token(Role.MONITOR))
        assert status == 200
        assert "process_resident_memory_bytes" in text
        assert parsed(text)["relaax_refused_total", "HTTP"] >= 3
        for use in ("server", "client", "ca"):
            assert parsed(text)["relaax_certificate_expires_timestamp_seconds", use] > time.time()
        if port == "rlx-server":  # of all its processes: see _require_nothing_over_rlx
            assert parsed(text)["relaax_refused_total", "RLX"] == REFUSED_OVER_RLX
            refused = parsed(text)["relaax_connections_refused_total", "no access"]
            assert refused == REFUSED_OVER_RLX
        assert guarded.ask(port, "/healthz")[0] == 200


def _require_no_secrets_shown(guarded: Guarded) -> None:
    """Look for tokens and keys wherever they might be seen."""
    training = guarded.training
    secrets = [line.split()[1] for line in (guarded.folder / "tokens").read_text().splitlines()[1:]]
    secrets += [(guarded.folder / "server.key").read_text().splitlines()[1]]
    shown = [process.output() for process in training.processes]
    shown += [" ".join(process.cmdline()) for process in training.survivors()]
    shown += [
        guarded.ask(port, "/metrics", guarded.token(Role.MONITOR))[1] for port in guarded.ports
    ]
    shown += [
        path.read_bytes().decode(errors="replace")
        for path in training.directory.rglob("*")
        if path.is_file()
        and guarded.folder not in path.parents
        and path.name != "as-an-environment"
    ]
    for secret in secrets:
        assert not any(secret in text for text in shown)


@SHARED
def test_tokens_are_replaced_without_a_restart(guarded: Guarded) -> None:
    training = guarded.training
    guarded.configure()
    training.start_parameter_server()
    training.start_replay_server(guarded.replay_url)
    training.start_rlx_server()
    files, old = guarded.files("environment"), guarded.token(Role.ENVIRONMENT)
    for _ in range(2):
        _renew(guarded)
        newest = (guarded.folder / "tokens").read_text().split("environment ")[1].split()[0]
        wait_for(lambda token=newest: _plays(guarded, token, files), "a token that counts")
        assert _plays(guarded, old, files)
    new = guarded.token(Role.ENVIRONMENT)
    assert new != old
    assert (guarded.folder / "environment.token").read_text().strip() == new
    for process in training.processes:
        process.says(f"the tokens in {guarded.folder / 'tokens'} count from now on: ")
    _renew(guarded)
    wait_for(lambda: not _plays(guarded, old, files), "the end of the old token")
    assert _plays(guarded, new, files)
    assert all(process.is_running() for process in training.processes)


@SHARED
@pytest.mark.usefixtures("environments_know")
def test_certificates_are_replaced_without_a_restart(guarded: Guarded) -> None:
    training = guarded.training
    parameter_server, *others = guarded.start()
    training.start_environments(1, env="Pendulum-v1", is_paced=True).says("episodes")
    _wait_for_updates(guarded, 0)
    # Of another authority, so that nothing which was signed before is worth anything.
    for name in ("ca.crt", "ca.key"):
        (guarded.folder / name).unlink()
    command = [COMMANDS / "relaax-certificates", guarded.folder]
    subprocess.run(command, check=True, capture_output=True)
    parameter_server.kill()
    training.start_parameter_server()
    for process in others[1:]:
        process.says("other servers are shown the renewed certificate")
    _wait_for_updates(guarded, _updates(guarded) + 50)
    assert all(process.is_running() for process in others)


@SHARED
def test_actors_say_once_that_a_certificate_expires(guarded: Guarded) -> None:
    command = [COMMANDS / "relaax-certificates", guarded.folder, "--days", "10"]
    subprocess.run(command, check=True, capture_output=True)
    guarded.training.start_parameter_server()
    guarded.training.start_replay_server(guarded.replay_url)
    actors = guarded.training.start_actors(2, env="Pendulum-v1")
    said = "server.crt: this certificate expires in 9 days"
    actors.says(said)
    wait_for(lambda: _writers(guarded) == 2, "two actors that play")
    actors.signal(signal.SIGTERM)
    assert actors.wait() == 0
    assert actors.output().count(said) == 1


def _writers(guarded: Guarded) -> float:
    answer = guarded.ask("replay-server", "/metrics", guarded.token(Role.MONITOR))
    return parsed(answer[1])["relaax_replay_writers",]


def _wait_for_updates(guarded: Guarded, above: float) -> None:
    wait_for(lambda: _updates(guarded) > above, "a step of the learner")


def _updates(guarded: Guarded) -> float:
    """Return the learner's steps; also while its certificate is renewed."""
    token = guarded.token(Role.MONITOR)
    answers: list[tuple[int, str]] = []

    def asks() -> bool:
        with contextlib.suppress(urllib.error.URLError):
            answers.append(guarded.ask("learner", "/metrics", token))
        return bool(answers)

    wait_for(asks, "an answer of the learner", 20)
    return parsed(answers[0][1])[UPDATES,]


def _renew(guarded: Guarded) -> None:
    command = [COMMANDS / "relaax-certificates", guarded.folder, "--renew-tokens"]
    subprocess.run(command, check=True, capture_output=True)


def _plays(guarded: Guarded, token: str, files: TlsFiles) -> bool:
    with guarded.client(token, files) as client:
        try:
            client.init([0.0, 0.0, 0.0])
        except Failure as failure:
            # Where it was allowed when it was shown, and is not when the hello comes: the latter.
            if failure.code not in (ErrorCode.ACCESS, ErrorCode.GO_ELSEWHERE):
                raise
            return False
    return True


@IN_BOTH_MODES
def test_open_connections_end_with_their_token_and_not_before(guarded: Guarded) -> None:
    """It is deleted when it has been renewed three times."""
    training = guarded.training
    guarded.start()
    token, path = guarded.token(Role.ENVIRONMENT), guarded.folder / "tokens"
    transport, url = _shows(guarded, token), training.rlx_server_url
    with (
        Client(url, protocol=1, transport=transport, timeout_s=20) as first,
        Client(url, protocol=2, transport=transport, timeout_s=20) as second,
        _follows(guarded) as follower,
    ):
        for client in (first, second, follower):
            client.init([0.0, 0.0, 0.0])
        for _ in range(2):
            _renew(guarded)
            _play_on(first, second, follower)
        assert token in path.read_text()
        _renew(guarded)
        assert token not in path.read_text()
        own = guarded.token(Role.ENVIRONMENT)
        with guarded.client(own, guarded.files("environment")) as third:
            third.init([0.0, 0.0, 0.0])
            failure = wait_for(lambda: _lost(second), "the end of a connection")
            assert failure.code == ErrorCode.GO_ELSEWHERE
            assert not failure.is_final
            assert "its token is not allowed any more" in failure.message
            failure = wait_for(lambda: _lost(first), "the end of a connection of version 1")
            assert failure.code is None
            failure = wait_for(lambda: _lost(follower), "the end of a connection")
            follower.init([0.0, 0.0, 0.0])  # with the newest token
            _play_on(third, follower)
            with pytest.raises(Failure, match="is not in the --auth-token-file") as refused:
                second.init([0.0, 0.0, 0.0])  # it knows but the old one
            assert refused.value.is_final


@SHARED
def test_clients_go_on_while_the_token_of_servers_is_replaced_as_after_a_theft(guarded: Guarded):
    """As docs/security.md says: servers read the file one after the other, within seconds."""
    guarded.start()
    path = guarded.folder / "tokens"
    with _follows(guarded) as client:
        client.init([0.0, 0.0, 0.0])
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("server ")))
        _renew(guarded)
        until = time.monotonic() + READ_AGAIN_S
        while time.monotonic() < until:
            failure = _lost(client)
            if failure is not None:
                assert not failure.is_final, failure
                client.init([0.0, 0.0, 0.0])
        _play_on(client)
    assert all(process.is_running() for process in guarded.training.processes)


def _follows(guarded: Guarded) -> Client:
    """Return a client that shows whatever token its file has, as programs do from the README."""
    access = ClientAccess(
        token_file=guarded.folder / "environment.token", tls=guarded.files("environment")
    )
    transport = TcpTransport(access)
    return Client(guarded.training.rlx_server_url, transport=transport, reconnect=Backoff())


def _play_on(*clients: Client) -> None:
    until = time.monotonic() + READ_AGAIN_S
    while time.monotonic() < until:
        time.sleep(STEP_S)
        for client in clients:
            client.send(1.0, [0.0, 0.0, 0.0])


def _lost(client: Client) -> Failure | None:
    """Play a step; return what fails."""
    time.sleep(STEP_S)
    try:
        client.send(1.0, [0.0, 0.0, 0.0])
    except Failure as failure:
        return failure
    return None


def test_version_1_is_spoken_over_tls_with_a_token(guarded: Guarded) -> None:
    guarded.training.start_parameter_server()
    guarded.training.start_replay_server(guarded.replay_url)
    guarded.training.start_rlx_server()
    access = ClientAccess(guarded.token(Role.ENVIRONMENT), tls=guarded.files("environment"))
    url = guarded.training.rlx_server_url
    with Client(url, protocol=1, transport=TcpTransport(access), timeout_s=20) as client:
        client.init([0.0, 0.0, 0.0])
        client.send(1.0, [0.0, 0.0, 0.0])
        assert client.reset(2.0) == 3.0
    access = ClientAccess(WRONG, tls=guarded.files("environment"))
    stranger = Client(url, protocol=1, transport=TcpTransport(access), timeout_s=20)
    with stranger, pytest.raises(Failure, match="closed the connection"):
        stranger.init([0.0, 0.0, 0.0])


def test_a_client_with_tls_hears_of_a_server_without_and_does_not_try_for_ever(
    training: Training,
) -> None:
    training.start_parameter_server()
    server = training.start_rlx_server()
    folder = SecretsFolder(training.directory / "secrets")
    folder.sign(["localhost"], days=1, days_of_authority=1)
    access = ClientAccess(tls=TlsFiles(ca=folder.path / "ca.crt"))
    client = Client(
        training.rlx_server_url,
        transport=TcpTransport(access),
        reconnect=Backoff(attempts=1_000_000),
        timeout_s=20,
    )
    with client, pytest.raises(Failure, match="does not speak TLS: start the server with --tls-c"):
        client.init([0.0] * 4)
    server.says("the peer speaks TLS instead of RLX")
    with Client(training.rlx_server_url, timeout_s=60) as client:
        assert client.init([0.0] * 4) is not None


def _shows(guarded: Guarded, token: str) -> TcpTransport:
    """Return the way of a client with an environment's certificate."""
    return TcpTransport(ClientAccess(token, tls=guarded.files("environment")))


def _failure(guarded: Guarded, url: str, token: str, protocol: int | None = None) -> Failure | None:
    """Play a step at ``url``; return what fails."""
    transport = _shows(guarded, token)
    with Client(url, protocol=protocol, transport=transport, timeout_s=20) as client:
        try:
            client.init([0.0, 0.0, 0.0])
        except Failure as failure:
            return failure
    return None


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("relaax-parameter-server", ["--bind", "0.0.0.0:0"]),
        ("relaax-parameter-server", ["--http-bind", "0.0.0.0:0"]),
        ("relaax-rlx-server", ["--bind", "0.0.0.0:0"]),
        ("relaax-rlx-server", ["--http-bind", "[::]:0"]),
        ("relaax-replay-server", ["--bind", "0.0.0.0:0"]),
        ("relaax-replay-server", ["--http-bind", "0.0.0.0:0"]),
        ("relaax-learner", ["--bind", "0.0.0.0:0"]),
        ("relaax-learner", ["--http-bind", "0.0.0.0:0"]),
    ],
)
def test_no_port_is_open_to_a_network_without_guards(
    training: Training, command: str, flags: list[str]
) -> None:
    training.configure(SMALL_SAC)
    process = training.start_command(command, "--log-level", "INFO", *flags)
    assert process.wait() == 2
    (said,) = process.output().splitlines()  # before anything is done
    assert said.startswith(f"{command}: error: {flags[0]}: cannot listen at ")
    assert "relaax-certificates FOLDER HOST" in said
    assert not training.checkpoints.exists()


def test_the_checkpoints_of_a_server_that_may_not_listen_are_listed(training: Training) -> None:
    training.configure(SMALL_SAC)
    training.checkpoints.mkdir()
    process = training.start_command(
        "relaax-parameter-server", "--bind", "0.0.0.0:0", "--list-checkpoints"
    )
    assert process.wait() == 0


def test_what_is_insecure_says_so(training: Training) -> None:
    training.configure(SMALL_SAC)
    port = free_port()
    process = training.start_parameter_server("--http-bind", f"0.0.0.0:{port}", "--insecure")
    assert f"--insecure: everybody who reaches 0.0.0.0:{port} may use it" in process.output()
    assert ask(f"127.0.0.1:{port}", "/healthz") == (200, "ok (insecure: --insecure is given)\n")
