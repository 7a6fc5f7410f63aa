"""A training across containers, each with a network of its own, with TLS and tokens."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from containers import NEEDS_RUNC
from images import NEEDS_BUILDAH, Image, ImageContainer
from networks import NEEDS_NAMESPACES, Machine, Network, network
from processes import REPOSITORY, Training, wait_for

pytestmark = [
    pytest.mark.integration, pytest.mark.timeout(900), NEEDS_BUILDAH, NEEDS_RUNC, NEEDS_NAMESPACES,
]  # fmt: skip

COMPOSE = REPOSITORY / "deploy" / "compose"

#: Where containers find their folder of secrets.
SECRETS = "/etc/relaax-secrets"

#: What each container finds there, and whose it is.
HANDED_OUT = {
    "servers": (10001, {"ca.crt", "server.crt", "server.key", "tokens"}),
    "environments": (
        10001, {"ca.crt", "environment.crt", "environment.key", "environment.token"},
    ),
    "monitor": (65534, {"ca.crt", "monitor.token"}),
}  # fmt: skip

#: Asks for figures as Prometheus does: arguments are an address, the authority, and a token's file.
ASKS = """
import pathlib, ssl, sys, urllib.error, urllib.request
address, authority, *token = sys.argv[1:]
request = urllib.request.Request(f"https://{address}/metrics")
if token:
    request.add_header("Authorization", "Bearer " + pathlib.Path(token[0]).read_text().strip())
context = ssl.create_default_context(cafile=authority)
try:
    print(urllib.request.urlopen(request, context=context, timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
"""


class Cluster:
    """A parameter server and an RLX server, as guarded.yaml of Compose starts them."""

    def __init__(
        self, training: Training, images: dict[str, Image], machines: Network, folder: Path
    ) -> None:
        self._training = training
        self._images = images
        self._machines = machines
        self.central, self.serving = machines.add(), machines.add()
        self.secrets = folder / "secrets"
        self._files = folder / "etc"
        for each in (self.secrets, self._files):
            each.mkdir()
        self._write_training()

    def make_secrets(self) -> None:
        """Run the image's command, as the head of guarded.yaml says."""
        hosts = (self.central.address, self.serving.address)
        command = ["relaax-secrets", *hosts]
        with self._run(
            "servers", self._machines.add(), command, {"/secrets": self.secrets}
        ) as made:
            assert made.process.wait() == 0, made.process.output()

    def server(self, machine: Machine, port: int, *words: str) -> ImageContainer:
        """Start a server that listens at all addresses of its machine."""
        bind = ["--bind", f"0.0.0.0:{port}", "--http-bind", "0.0.0.0:7100"]
        config = ["--config", "/etc/relaax/training.yaml"]
        return ImageContainer(
            self._training, self._images["relaax-servers"], machine,
            [words[0], *config, *bind, *words[1:]],
            read_only={"/etc/relaax": self._files, SECRETS: self.secrets / "servers"},
        )  # fmt: skip

    def environments(self, variables: dict[str, str]) -> ImageContainer:
        """Start environments on a machine of their own, with these variables."""
        return ImageContainer(
            self._training, self._images["relaax-gym"], self._machines.add(),
            [f"{self.serving.address}:7001", "CartPole-v1", "8", "--per-connection", "8",
             "--attempts", "2"],
            limit_mib=512,
            variables=[f"{name}={value}" for name, value in variables.items()],
            read_only={SECRETS: self.secrets / "environments"},
        )  # fmt: skip

    def figures(self, machine: Machine, *token: str) -> str:
        """Return what a machine's port for operators answers to one that shows a token."""
        address = f"{machine.address}:7100"
        authority = str(self.secrets / "monitor" / "ca.crt")
        words = machine.command(sys.executable, "-c", ASKS, address, authority, *token)
        asked = self._training.start("asks", words)
        assert asked.wait() == 0, asked.output()
        return asked.output()

    def _run(
        self, image: str, machine: Machine, words: list[str], volumes: dict[str, Path]
    ) -> ImageContainer:
        found = self._images[f"relaax-{image}"]
        return ImageContainer(self._training, found, machine, words, volumes, is_root=True)

    def _write_training(self) -> None:
        """CartPole without an end that comes soon, guarded as Compose's training is."""
        content = yaml.safe_load((REPOSITORY / "config" / "da3c_cartpole_fast.yaml").read_text())
        algorithm = {key: value for key, value in content["algorithm"].items() if key != "path"}
        training: dict[str, Any] = {
            "access": yaml.safe_load((COMPOSE / "training.yaml").read_text())["access"],
            "relaax-parameter-server": {"--checkpoint-dir": "/tmp/checkpoints"},
            "relaax-rlx-server": {
                "--log-level": "INFO", "--workers": 1,
                "--parameter-server": f"{self.central.address}:7000",
            },
            "algorithm": {**algorithm, "name": "da3c", "max_global_step": 10**8},
        }  # fmt: skip
        (self._files / "training.yaml").write_text(yaml.safe_dump(training))
        guarded = (COMPOSE / "access.guarded.yaml").read_text()
        (self._files / "access.yaml").write_text(guarded)


@pytest.fixture(name="cluster")
def _cluster(training: Training, tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        images = {name: Image(name) for name in ("relaax-servers", "relaax-gym")}
        for image in images.values():
            stack.callback(image.close)
        machines = stack.enter_context(network(training))
        yield Cluster(training, images, machines, tmp_path)


def test_a_guarded_training_across_containers(cluster: Cluster):
    """Nothing is refused, and nothing is admitted that has no token."""
    cluster.make_secrets()
    _require_handed_out(cluster.secrets)
    with ExitStack() as stack:
        parameter_server = stack.enter_context(
            cluster.server(cluster.central, 7000, "relaax-parameter-server")
        )
        rlx_server = stack.enter_context(cluster.server(cluster.serving, 7001, "relaax-rlx-server"))
        rlx_server.process.says("serving at ")
        variables = _variables()
        for shown, status, reason in (
            ({**variables, "RELAAX_TOKEN_FILE": ""}, 2, "no token was shown"),
            ({}, 2, "this port speaks TLS, and the client does not"),
        ):
            with cluster.environments(shown) as stranger:
                assert stranger.process.wait() == status
                assert reason in stranger.process.output()
        counted = parameter_server.process.output()
        assert "step 0 of " in counted
        assert not re.search(r"step [1-9]|[1-9] environments? on", counted)
        assert "insecure" not in counted + rlx_server.process.output()

        environments = stack.enter_context(cluster.environments(variables))
        parameter_server.process.says(r"training: step [1-9].* 8 environments on 1 connection")
        for container in (parameter_server, rlx_server, environments):
            checked = wait_for(lambda c=container: c.health(), "a health check")
            assert checked.returncode == 0, checked.stdout + checked.stderr
        monitor = str(cluster.secrets / "monitor" / "monitor.token")
        for machine, figure in (
            (cluster.central, "relaax_global_step"), (cluster.serving, "relaax_connections 1.0"),
        ):  # fmt: skip
            assert figure in cluster.figures(machine, monitor)
            assert cluster.figures(machine).strip() == "401"
        assert environments.stop() == 0
        assert rlx_server.stop() == 0
        assert parameter_server.stop() == 0


def test_secrets_are_renewed_by_the_same_command(cluster: Cluster):
    cluster.make_secrets()
    first = (cluster.secrets / "servers" / "server.crt").read_bytes()
    tokens = (cluster.secrets / "servers" / "tokens").read_bytes()
    cluster.make_secrets()
    _require_handed_out(cluster.secrets)
    assert (cluster.secrets / "servers" / "server.crt").read_bytes() != first
    assert (cluster.secrets / "servers" / "tokens").read_bytes() == tokens


def _variables() -> dict[str, str]:
    """Return the environments' variables of guarded.yaml."""
    services = yaml.safe_load((COMPOSE / "guarded.yaml").read_text())["services"]
    variables: dict[str, str] = services["environments"]["environment"]
    return variables


def _require_handed_out(secrets: Path) -> None:
    for name, (user, files) in HANDED_OUT.items():
        folder = secrets / name
        assert {path.name for path in folder.iterdir()} == files
        for path in (folder, *folder.iterdir()):
            state = path.stat()
            assert (state.st_uid, state.st_mode & 0o077) == (user, 0), path
