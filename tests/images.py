"""Images of this project, built from its Dockerfiles and run as a container service would."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from containers import MIB, MOUNTS, Container
from networks import Machine
from processes import MARK, REPOSITORY, Training
from programs import IS_ROOT, needs, program

BUILDAH = program("buildah")

NEEDS_BUILDAH = needs(
    BUILDAH is not None and program("debootstrap") is not None and IS_ROOT,
    "needs buildah and debootstrap (apt install buildah debootstrap), and root",
)

#: What all images may write to, and nothing else.
_TEMPORARY: list[dict[str, object]] = [
    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]}
]

#: What root may do in a container, of what Docker allows: read and give away all files.
_OF_ROOT = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER"]


class Image:
    """An image, built from this checkout, and a container of buildah with its files."""

    def __init__(self, name: str) -> None:
        build = [str(REPOSITORY / "deploy" / "containers" / "build"), "--builder", "buildah", name]
        built = subprocess.run(build, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stdout + built.stderr
        self.name = name
        self.size_mb = _megabytes(built.stdout, name)
        self._container = _buildah("from", f"localhost/{name}")
        self.root = Path(_buildah("mount", self._container))
        self.docker: dict[str, Any] = json.loads(_buildah("inspect", self._container))["Docker"]

    def close(self) -> None:
        """Remove the files; the image stays."""
        _buildah("rm", self._container)

    def as_root(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as root in these files; what it writes is not part of the image."""
        return subprocess.run(
            ["chroot", str(self.root), *command], capture_output=True, text=True, check=False
        )

    @property
    def config(self) -> dict[str, Any]:
        """What the image says of how it is run: User, Env, Entrypoint, Cmd, Healthcheck."""
        config: dict[str, Any] = self.docker["config"]
        return config


class ImageContainer(Container):
    """A container of an image: not root, nothing writable but /tmp and ``volumes``.

    ``machine`` is whose network it has; ``volumes`` are paths in it, and folders of this machine;
    ``read_only`` are likewise, and keep their owners and modes; ``variables`` are such as
    NAME=VALUE. ``is_root`` is as ``docker run --user 0``.
    """

    def __init__(
        self,
        training: Training,
        image: Image,
        machine: Machine,
        arguments: Sequence[str],
        volumes: dict[str, Path] | None = None,
        limit_mib: int = 2048,
        variables: Sequence[str] = (),
        read_only: dict[str, Path] | None = None,
        is_root: bool = False,
    ) -> None:
        name = f"{image.name}-{len(training.processes)}"
        bundle = training.directory / f"container-{name}"
        bundle.mkdir()
        self._image = image
        config = image.config
        self.start(
            training,
            name,
            bundle,
            {
                "ociVersion": "1.0.2",
                "process": {
                    "user": dict.fromkeys(("uid", "gid"), 0 if is_root else _user(config)),
                    "capabilities": dict.fromkeys(
                        ("bounding", "effective", "permitted"), _OF_ROOT if is_root else []
                    ),
                    "args": [*(config.get("Entrypoint") or []), *arguments],
                    "env": [*config["Env"], *variables, f"{MARK}={training.directory}"],
                    "cwd": config["WorkingDir"],
                    "noNewPrivileges": True,
                },
                "root": {"path": str(image.root), "readonly": True},
                "mounts": [
                    *MOUNTS, *_TEMPORARY, *_volumes(volumes or {}), *_as_they_are(read_only or {}),
                ],
                "linux": {
                    "namespaces": [
                        *({"type": kind} for kind in ("pid", "mount", "ipc", "uts")),
                        {"type": "network", "path": f"/var/run/netns/{machine.name}"},
                    ],
                    "resources": {"memory": {"limit": limit_mib * MIB}},
                },
            },
        )  # fmt: skip

    def health(self) -> subprocess.CompletedProcess[str]:
        """Do the image's health check once."""
        kind, *arguments = self._image.config["Healthcheck"]["Test"]
        if kind == "CMD-SHELL":
            return self.run("/bin/sh", "-c", *arguments)
        return self.run(*arguments)


def _user(config: dict[str, Any]) -> int:
    return int(config["User"].partition(":")[0])


def _volumes(volumes: dict[str, Path]) -> list[dict[str, object]]:
    for path in volumes.values():
        os.chmod(path, 0o777)  # noqa: S103  # the container's user is another one
    return [
        {"destination": where, "type": "bind", "source": str(path), "options": ["bind"]}
        for where, path in volumes.items()
    ]


def _as_they_are(read_only: dict[str, Path]) -> list[dict[str, object]]:
    return [
        {"destination": where, "type": "bind", "source": str(path), "options": ["bind", "ro"]}
        for where, path in read_only.items()
    ]


def _buildah(*arguments: str) -> str:
    return subprocess.run(
        [str(BUILDAH), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def _megabytes(listed: str, name: str) -> float:
    """Return the size from the list of images that the build prints."""
    match = re.search(rf"{name}:latest +([\d.]+) (MB|GB)", listed)
    assert match, listed
    return float(match[1]) * {"MB": 1, "GB": 1000}[match[2]]
