"""A hello whose spaces do not fit is refused, and found by a check of the configuration later."""

import logging

import pytest
from processes import REPOSITORY

from relaax.configuration.algorithm_loader import load_algorithm
from relaax.errors import InvalidState
from relaax.protocol import binary
from relaax.protocol.binary import Hello
from relaax.server.rlx_server.worker.session import begin
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.spaces import discrete


def test_other_spaces_are_refused_and_said_to_be_doubtful_once(caplog):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / "da3c")
    config = algorithm.Config({"action_size": 2, "state_size": [4]})
    settings = WorkerSettings(
        algorithm, config, "localhost:1", timeout_s=None,
        open_connection=None, max_frame_bytes=None, max_environments=1,
    )  # fmt: skip
    hello = binary.encode_hello(Hello("", "Mine-v0", action_space=discrete(3)))
    for _ in range(2):
        with caplog.at_level(logging.WARNING), pytest.raises(InvalidState) as refused:
            begin(settings, hello)
    (line,) = caplog.messages
    assert line.startswith(f"doubtful: an environment was refused: {refused.value}")
