"""The docstring of a package names each of its modules."""

import importlib
import pkgutil

import pytest

import relaax

PACKAGES = [
    "relaax",
    *(module.name for module in pkgutil.walk_packages(relaax.__path__, "relaax.") if module.ispkg),
]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_a_line_for_each_module(name):
    package = importlib.import_module(name)
    lines = [line for line in package.__doc__.splitlines() if line[:2] == "``"]
    mapped = {word for line in lines for word in line.split("``")[1::2]}
    modules = {
        module.name
        for module in pkgutil.iter_modules(package.__path__)
        if not module.name.endswith(("_pb2", "_pb2_grpc"))
    }
    assert modules <= {entry.removeprefix(f"{name}.") for entry in mapped}
