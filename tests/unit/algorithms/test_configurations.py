"""The algorithms take what the YAML files in config/ say."""

import pytest
from processes import REPOSITORY

from relaax.server.common.algorithm_loader import load_algorithm, make_config
from relaax.server.common.configuration import load_rlx_server


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("config/*.yaml")), ids=lambda p: p.stem)
def test_every_configuration_of_the_repository_is_taken(path):
    section = load_rlx_server(["--config", str(path)]).algorithm
    config = make_config(load_algorithm(section.directory), section)
    assert config.network.manifest.specs
