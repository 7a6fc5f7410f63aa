"""Write the lock files: every package that an installation takes, with version and hashes.

``make lock`` keeps the versions that are locked already, where pyproject.toml still allows them;
``make lock UPGRADE=yes`` takes the newest. Neither an index nor a folder of wheels is written down:
pip finds the files where it is configured to, and the hashes say whether they are the right ones.
"""

import argparse
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

#: How long the versions of one file may take to be found.
DEADLINE_S = 1800.0

#: What an image of environments needs beside the package itself, which is installed alone.
IMAGES_OF_ENVIRONMENTS = {
    "ale": ["numpy", "ale-py"],
    "gym": ["numpy", "gymnasium[box2d,classic-control]", "ale-py", "opencv-python-headless"],
    "lab": ["numpy", "pygame-ce"],
    "vizdoom": ["numpy", "vizdoom"],
}

#: The image of the servers has one of these in the place of "tensorflow".
IMAGES_OF_SERVERS = {"cpu": "tensorflow-cpu", "cuda": "tensorflow[and-cuda]"}


def wanted() -> dict[str, list[str]]:
    """Return what is asked for in each lock file, by its path below this folder."""
    project = _pyproject()["project"]
    extras = project["optional-dependencies"]
    servers = project["dependencies"]
    images = {
        f"servers-{kind}": [
            *(each.replace("tensorflow>", f"{tensorflow}>") for each in servers), "tensorboard",
        ]
        for kind, tensorflow in IMAGES_OF_SERVERS.items()
    } | IMAGES_OF_ENVIRONMENTS  # fmt: skip
    return {
        "test.txt": [*servers, *_flat(extras["test"], extras)],
        "run.txt": [*servers, *extras["environments"]],
        "fuzz.txt": extras["fuzz"],
        "build.txt": _pyproject()["build-system"]["requires"],
        "pip.txt": ["pip"],
        **{f"images/{name}.txt": lines for name, lines in images.items()},
    }


def _flat(lines: list[str], extras: dict[str, list[str]]) -> list[str]:
    """Return requirements, with those of the project's own extras in the place of relaax[...]."""
    flat = []
    for line in lines:
        if line.startswith("relaax["):
            for extra in line.removeprefix("relaax[").removesuffix("]").split(","):
                flat += _flat(extras[extra], extras)
        else:
            flat.append(line)
    return flat


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _lock(name: str, lines: list[str], upgrades: bool) -> None:
    # What is run has the versions that are tested: the file of the tests, which is the first, has
    # all of them. A build is isolated from both.
    is_apart = name in ("test.txt", "pip.txt", "build.txt")
    follows = [] if is_apart else ["--constraint", "requirements/test.txt"]
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    subprocess.run(  # noqa: S603  # uv, of this environment
        [
            uv, "pip", "compile", "-", "--output-file", f"requirements/{name}", "--quiet",
            "--universal", "--python-version", "3.11", "--generate-hashes",
            "--only-binary", ":all:", "--no-annotate", "--custom-compile-command", "make lock",
            *follows, *(["--upgrade"] if upgrades else []),
        ],
        cwd=ROOT, input="\n".join(lines), text=True, check=True,
        timeout=DEADLINE_S,
    )  # fmt: skip


def main() -> None:
    """Write all lock files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    upgrades = parser.parse_args().upgrade
    for name, lines in wanted().items():
        _lock(name, lines, upgrades)


if __name__ == "__main__":
    main()
