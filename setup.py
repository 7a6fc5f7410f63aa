"""Builds what metadata alone cannot say: the gRPC code from protos/, and the bundled algorithms."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PROTOS = ROOT / "protos"
ALGORITHMS = ROOT / "algorithms"


def generate_grpc_code(target: Path) -> None:
    """Compile every .proto below protos/ into the same folder below ``target``."""
    from grpc_tools import protoc

    for proto in sorted(PROTOS.rglob("*.proto")):
        outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python")]
        if protoc.main(["protoc", f"-I{PROTOS}", *outputs, str(proto)]) != 0:
            raise RuntimeError(f"protoc could not compile {proto}")


class BuildPy(build_py):
    """In an editable install the code is generated into the source tree, where git ignores it."""

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
