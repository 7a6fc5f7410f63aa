"""Whatever waits for a parameter server says why that is not reached, where TLS is the reason."""

import subprocess

import pytest
from processes import COMMANDS, SMALL_DA3C, SMALL_SAC, Process, Training, free_port
from worker_modes import SHARED

pytestmark = [pytest.mark.integration, SHARED]

WRONG_AUTHORITY = r"no connection to \S+: its certificate is not signed by an authority in \S+other"


class Authorities:
    """Two of them, whose files have the same names in two folders."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.own, self.other = training.directory / "own", training.directory / "other"
        for folder in (self.own, self.other):
            command = [COMMANDS / "relaax-certificates", folder]
            subprocess.run(command, check=True, capture_output=True, timeout=60)

    def of_own(self) -> dict[str, str]:
        return self.options(ca=self.own, cert=self.own)

    @staticmethod
    def options(ca, cert=None) -> dict[str, str]:
        options = {"tls-ca": str(ca / "ca.crt")}
        if cert is not None:
            options["tls-cert"] = str(cert / "server.crt")
            options["tls-key"] = str(cert / "server.key")
        return options

    def serve(self, algorithm, access: dict[str, str]) -> None:
        """Start a parameter server with this access."""
        self._configure(algorithm, access)
        self.training.start_parameter_server()

    def start(self, algorithm, access: dict[str, str], command: str, *flags: str) -> Process:
        """Start another process with this access."""
        self._configure(algorithm, access)
        return self.training.start_command(command, *flags)

    def _configure(self, algorithm, access: dict[str, str]) -> None:
        """Write a file of its own: a process that has just been started may not have read its."""
        training = self.training
        training.access = access
        training.configure(algorithm)
        training.yaml = training.yaml.rename(
            training.directory / f"training-{len(training.processes)}.yaml"
        )


@pytest.fixture(name="authorities")
def _authorities(training: Training) -> Authorities:
    return Authorities(training)


def start_rlx_server(authorities: Authorities, access: dict[str, str]) -> Process:
    bind = ("--bind", f"127.0.0.1:{free_port()}")
    return authorities.start(SMALL_DA3C, access, "relaax-rlx-server", *bind)


def test_an_rlx_server_says_what_of_tls_keeps_it_from_its_parameter_server(
    authorities: Authorities,
) -> None:
    own, other = authorities.own, authorities.other
    authorities.serve(SMALL_DA3C, authorities.of_own())
    without_tls = start_rlx_server(authorities, {})
    distrusts = start_rlx_server(authorities, authorities.options(ca=other, cert=own))
    is_distrusted = start_rlx_server(authorities, authorities.options(ca=own, cert=other))
    for process, cause in (
        (without_tls, "it closes the connection, as where it speaks TLS and this process does not"),
        (distrusts, "its certificate is not signed by an authority in .*ca.crt .--tls-ca"),
        (
            is_distrusted,
            "it closes the connection, as where it does not accept the certificate in .*server.crt",
        ),
    ):
        process.says(rf"no connection to \S+: {cause}")  # the watcher
        process.says(rf"waiting for parameter server \S+ \({cause}")  # the worker
        assert "Traceback" not in process.output()


def test_an_rlx_server_says_that_its_parameter_server_speaks_no_tls(
    authorities: Authorities,
) -> None:
    authorities.serve(SMALL_DA3C, {})
    process = start_rlx_server(authorities, authorities.of_own())
    process.says(r"no connection to \S+: it does not speak TLS, and this process does")


def test_all_that_need_the_parameter_server_say_why_they_do_not_reach_it(
    authorities: Authorities, training: Training
) -> None:
    authorities.serve(SMALL_SAC, authorities.of_own())
    address = f"127.0.0.1:{free_port()}"
    wrong = authorities.options(ca=authorities.other, cert=authorities.other)
    shards = ("--shards", training.parameter_server_url, address)
    sharing = {**SMALL_SAC, "learners": {"count": 2, "gradients": "asynchronous"}}
    started = [
        authorities.start(algorithm, wrong, command, *flags)
        for algorithm, command, *flags in (
            (SMALL_SAC, "relaax-learner"),
            (sharing, "relaax-learner", "--checkpoint-dir", str(training.directory / "second"),
             "--replay-servers", f"127.0.0.1:{free_port()}"),
            (SMALL_SAC, "relaax-replay-server", "--bind", f"127.0.0.1:{free_port()}"),
            (SMALL_SAC, "relaax-actor", "--env", "Pendulum-v1"),
            (SMALL_DA3C, "relaax-parameter-server", "--bind", f"127.0.0.1:{free_port()}",
             "--replica-of", training.parameter_server_url),
            (SMALL_DA3C, "relaax-parameter-server", "--bind", address, "--shard", "2/2", *shards),
        )
    ]  # fmt: skip
    for process in started:
        process.says(WRONG_AUTHORITY)
        assert "Traceback" not in process.output()
