"""A setting passes the files that ``docs/architecture.md`` lists: those whose functions hold it."""

import socket
from pathlib import Path

import pytest
from processes import REPOSITORY
from ways import Files, documented

from relaax.configuration import load_rlx_server
from relaax.configuration.algorithm_loader import load_algorithm, make_config
from relaax.server.rlx_server.wiring import rlx_server

#: Numbers that nothing else has.
OPTION, KEY = 71_234, 0.8125

#: Checks of all keys of a section, each for its own one.
CHECKS = {
    "algorithm_base/config_base.py",
    "learning/method_config.py",
    "learning/on_policy/discrete.py",
    "learning/on_policy/networks.py",
    "parameters/optimizers/sections.py",
}


def holding(number):
    """Return what notes the files whose functions return with a number in hand."""
    return Files("return", lambda frame: str(number) in repr([*frame.f_locals.values()]))


@pytest.fixture(name="file")
def _file(tmp_path):
    load_algorithm(REPOSITORY / "algorithms" / "da3c").prepare_to_fork()  # watched, it takes long
    file = Path(tmp_path, "config.yaml")
    file.write_text(
        f"relaax-rlx-server: {{--max-connections: {OPTION}}}\n"
        f"algorithm: {{name: da3c, state_size: [4], action_size: 2, rewards_gamma: {KEY}}}\n"
    )
    return ["--config", str(file)]


def test_an_option_passes_the_files_that_the_page_lists(file):
    with holding(OPTION) as files:
        configuration = load_rlx_server(file)
    with holding(OPTION) as wiring, socket.create_server(("localhost", 0)) as listener:
        rlx_server(configuration, listener)
    assert files.found == documented("The way of a setting")
    assert len(files.found) <= 6
    assert wiring.found == {"server/rlx_server/wiring.py", "server/rlx_server/server.py"}


def test_a_key_of_the_algorithm_passes_the_files_that_the_page_lists(file):
    def made():
        section = load_rlx_server(file).algorithm
        algorithm = load_algorithm(section.directory)
        config = make_config(algorithm, section)
        return algorithm.module.builder.Da3cBuilder(config).objective()

    with holding(KEY) as files:
        assert made().discount == KEY
    found = files.found - CHECKS
    assert found == documented("The way of a setting", 1)
    assert len(found) <= 9
