"""The images of the servers and of the environments: built, looked into, and run together."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from ale_py import roms
from containers import NEEDS_RUNC
from images import NEEDS_BUILDAH, Image, ImageContainer
from networks import NEEDS_NAMESPACES, Machine, Network, network
from processes import REPOSITORY, SMALL_DA3C, Training, wait_for
from programs import needs, program

pytestmark = [
    pytest.mark.integration, pytest.mark.timeout(900), NEEDS_BUILDAH, NEEDS_RUNC, NEEDS_NAMESPACES,
    needs(program("vncsnapshot") is not None, "needs vncsnapshot (apt install vncsnapshot)"),
]  # fmt: skip

#: No image is larger, in MB; docs/containers.md has what they are.
LARGEST = {
    "relaax-servers": 1600,
    "relaax-ale": 260,
    "relaax-gym": 480,
    "relaax-lab": 260,
    "relaax-vizdoom": 450,
}

COMPILERS = ("cc", "gcc", "g++", "clang", "ld", "make")

CONFIG = "/opt/relaax/config/da3c_cartpole_fast.yaml"

#: What the games of the next tests send and take.
PLAYED = {
    "ale": {"action_size": 18, "state_size": [84, 84]},
    "gym": {"action_size": 2, "state_size": [4]},
    "lab": {"action_size": 11, "state_size": [84, 84]},
    "vizdoom": {"action_size": 4, "state_size": [60, 80]},
}

#: "relaax", as VNC's programs keep passwords: DES with a key that all of them know.
VNC_PASSWORD = bytes.fromhex("ba96091f49fe510b")

#: Listens at VNC's port, for both versions of IP.
TAKES_PORT = """
import socket, time
server = socket.create_server(("", 5900), family=socket.AF_INET6, dualstack_ipv6=True)
print("there", flush=True)
time.sleep(600)
"""

HTTP = ("--http-bind", "0.0.0.0:7100", "--insecure")


@pytest.fixture(name="images", scope="module")
def _images() -> Iterator[dict[str, Image]]:
    with ExitStack() as stack:
        made = {name: Image(name) for name in LARGEST}
        for image in made.values():
            stack.callback(image.close)
        yield made


@pytest.fixture(name="machines")
def _machines(training: Training) -> Iterator[Network]:
    with network(training) as machines:
        yield machines


@pytest.mark.parametrize("name", LARGEST)
def test_an_image_is_small_has_no_compiler_and_is_not_roots(images: dict[str, Image], name: str):
    image = images[name]
    print(f"{name}: {image.size_mb:.0f} MB")
    assert image.size_mb < LARGEST[name]
    assert image.config["User"] == "10001:10001"
    folders = [image.root / folder for folder in ("usr/bin", "usr/local/bin", "opt/relaax/bin")]
    there = {path.name for folder in folders for path in folder.iterdir()}
    assert there & {"python3", "python"}
    assert not there & {*COMPILERS, "pip"}


def test_images_of_environments_have_no_tensorflow(images: dict[str, Image]):
    def packages(name: str) -> set[str]:
        return {
            path.name for path in images[name].root.glob("opt/relaax/lib/python3*/site-packages/*")
        }

    assert "tensorflow" in packages("relaax-servers")
    for name in set(LARGEST) - {"relaax-servers"}:
        assert {"numpy", "relaax"} < packages(name)
        assert not {"tensorflow", "grpc"} & packages(name)


@pytest.mark.parametrize("name", LARGEST)
def test_an_image_made_of_this_one_can_install_more(images: dict[str, Image], name: str):
    checked = images[name].as_root("apt-get", "check")
    assert checked.returncode == 0, checked.stderr
    assert images[name].as_root("dpkg", "--audit").stdout == ""


def test_a_training_across_containers(
    images: dict[str, Image], training: Training, machines: Network, tmp_path: Path
):
    """Each has a network of its own, a root that cannot be written, and a limit of memory."""
    central, serving, playing = (machines.add() for _ in range(3))
    volume = tmp_path / "volume"
    volume.mkdir()
    with ExitStack() as stack:
        parameter_server = stack.enter_context(
            ImageContainer(
                training, images["relaax-servers"], central,
                ["relaax-parameter-server", "--config", CONFIG, "--bind", "0.0.0.0:7000", *HTTP],
                {"/training": volume},
            )
        )  # fmt: skip
        rlx_server = stack.enter_context(
            ImageContainer(
                training, images["relaax-servers"], serving,
                [
                    "relaax-rlx-server", "--config", CONFIG, "--bind", "0.0.0.0:7001", *HTTP,
                    "--parameter-server", f"{central.address}:7000", "--log-level", "INFO",
                ],
            )
        )  # fmt: skip
        rlx_server.process.says("serving at ")
        environments = stack.enter_context(
            ImageContainer(
                training, images["relaax-gym"], playing,
                [f"{serving.address}:7001", "CartPole-v1", "8", "--per-connection", "8"],
                limit_mib=512,
            )
        )  # fmt: skip
        parameter_server.process.says(r"training: step [1-9].* 8 environments on 1 connection")
        for container in (parameter_server, rlx_server, environments):
            checked = wait_for(lambda c=container: c.health(), "a health check")
            assert checked.returncode == 0, checked.stdout + checked.stderr
            assert container.run("id", "-u").stdout == "10001\n"
            assert container.run("touch", "/opt/relaax/new").returncode != 0
        returns = wait_for(
            lambda: [r for r in _returns(parameter_server.process.output()) if r > 100],
            "a mean return of 100",
        )
        assert returns
        assert environments.stop() == 0
        assert rlx_server.stop() == 0
        assert parameter_server.stop() == 0

    assert list(volume.glob("training/cartpole_fast/checkpoints/cp-*.safetensors"))


@pytest.mark.parametrize(
    ("name", "game"),
    [("ale", "boxing"), ("gym", "CartPole-v1"), ("lab", "tests/demo_map"), ("vizdoom", "basic")],
)
def test_a_game_is_shown_by_vnc(
    images: dict[str, Image], training: Training, machines: Network, tmp_path: Path,
    name: str, game: str,
):  # fmt: skip
    """The server is real; what a viewer sees is a picture of many colours, not a black screen.

    The Lab is the stand-in for it, in a folder of its own.
    """
    serving, playing = machines.add(), machines.add()
    stand_in = shutil.copytree(REPOSITORY / "tests" / "stand_in", tmp_path / "stand-in")
    with ExitStack() as stack:
        url = _start_servers(images, training, serving, name, tmp_path, stack)[1]
        shown = stack.enter_context(
            ImageContainer(
                training, images[f"relaax-{name}"], playing, [url, game, "display"],
                {"/stand-in": stand_in}, limit_mib=512, variables=["PYTHONPATH=/stand-in"],
            )
        )  # fmt: skip
        shown.process.says("a VNC server shows the game at port 5900")
        password = tmp_path / "password"
        password.write_bytes(VNC_PASSWORD)
        picture = tmp_path / "screen.jpg"
        snapshot = playing.command(
            "vncsnapshot", "-quiet", "-passwd", str(password), f"{playing.address}:0", str(picture)
        )

        def colours() -> int:
            subprocess.run(snapshot, capture_output=True, check=False)
            return len(np.unique(plt.imread(picture)[..., 0])) if picture.exists() else 0

        wait_for(lambda: colours() > 8, "a picture")
        assert shown.stop() == 0


def test_a_display_that_cannot_be_shown_is_an_error(
    images: dict[str, Image], training: Training, machines: Network
):
    """The port of VNC is taken by another program of the same network."""
    machine = machines.add()
    program = [sys.executable, "-c", TAKES_PORT]
    training.start("taken", machine.command(*program)).says("there")
    words = ["localhost:7001", "CartPole-v1", "display"]
    with ImageContainer(training, images["relaax-gym"], machine, words) as shown:
        assert shown.process.wait() == 1
        said = shown.process.output()
        assert "the VNC server did not start within 10 s:" in said
        assert "shows the game" not in said


@pytest.mark.parametrize(
    ("name", "words", "count"), [("ale", ["my_game"], 1), ("vizdoom", ["basic", "2"], 2)]
)
def test_one_game_or_several_are_played(
    images: dict[str, Image], training: Training, machines: Network, tmp_path: Path,
    name: str, words: list[str], count: int,
):  # fmt: skip
    """The first is a file of a mounted folder, under a name that ale-py does not know."""
    serving, playing = machines.add(), machines.add()
    own = tmp_path / "roms"
    own.mkdir()
    shutil.copy(roms.get_rom_path("boxing"), own / "my_game.bin")
    with ExitStack() as stack:
        parameter_server, url = _start_servers(images, training, serving, name, tmp_path, stack)
        played = stack.enter_context(
            ImageContainer(
                training, images[f"relaax-{name}"], playing, [url, *words], {"/roms": own},
                limit_mib=512,
            )
        )  # fmt: skip
        parameter_server.process.says(rf"training: step [1-9].* {count} environments? on ")
        assert played.stop() == 0


@pytest.mark.parametrize("name", LARGEST)
def test_an_image_explains_itself(
    images: dict[str, Image], training: Training, machines: Network, name: str
):
    image = images[name]
    command = image.config["Cmd"]
    with ImageContainer(training, image, machines.add(), command) as container:
        assert container.process.wait() == 0
        assert "--help" in container.process.output()


def _start_servers(
    images: dict[str, Image], training: Training, machine: Machine, name: str, folder: Path,
    stack: ExitStack,
) -> tuple[ImageContainer, str]:  # fmt: skip
    """Start both servers for a game; return the parameter server, and the other's address."""
    bundled = {key: value for key, value in SMALL_DA3C.items() if key != "path"}
    training.access = {"insecure": True}
    training.configure({**bundled, "name": "da3c", **PLAYED[name], "history_len": 1})
    config = folder / "training.yaml"
    config.write_text(training.yaml.read_text().replace("127.0.0.1", machine.address))
    started = []
    for command in ("relaax-parameter-server", "relaax-rlx-server"):
        arguments = [command, "--config", "/config/training.yaml"]
        volumes = {"/config": folder}
        server = ImageContainer(training, images["relaax-servers"], machine, arguments, volumes)
        started.append(stack.enter_context(server))
    started[1].process.says("serving at ")
    return started[0], f"{machine.address}:{training.rlx_server_url.split(':')[1]}"


def _returns(output: str) -> list[float]:
    return [float(text) for text in re.findall(r"\| return ([\d.]+)", output)]
