"""The build steps that pyproject.toml cannot describe: gRPC code and the bundled algorithms."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PROTOS = ROOT / "protos"
ALGORITHMS = ROOT / "algorithms"


def generate_grpc_code(target: Path) -> None:
    """Compile every .proto below protos/ into the same folder below ``target``."""
    from grpc_tools import protoc  # only a build needs it, not a look at the metadata

    for proto in sorted(PROTOS.rglob("*.proto")):
        outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python")]
        if protoc.main(["protoc", f"-I{PROTOS}", *outputs, str(proto)]) != 0:
            raise RuntimeError(f"protoc could not compile {proto}")


class BuildPy(build_py):
    """Adds generated gRPC code and the bundled algorithms to the package.

    In an editable install, the code is generated into the source tree, where git ignores it, and
    the algorithms are used in their own folder.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            generate_grpc_code(ROOT)
            return
        target = Path(self.build_lib)
        generate_grpc_code(target)
        shutil.copytree(
            ALGORITHMS,
            target / "relaax" / "bundled_algorithms",
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )


setup(cmdclass={"build_py": BuildPy})
