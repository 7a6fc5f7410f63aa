"""The docstring of a package names each of its modules."""

import importlib
import pkgutil

import pytest

PACKAGES = [
    "relaax.server",
    "relaax.server.common",
    "relaax.server.common.configuration",
    "relaax.server.common.saver",
    "relaax.server.launcher",
    "relaax.server.parameter_server",
    "relaax.server.parameter_server.metrics",
]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_a_line_for_each_module(name):
    package = importlib.import_module(name)
    mapped = {line.split("``")[1] for line in package.__doc__.splitlines() if line[:2] == "``"}
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert {entry.removeprefix(f"{name}.") for entry in mapped} == modules
