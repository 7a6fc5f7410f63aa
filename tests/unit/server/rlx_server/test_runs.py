"""An RLX server is for the environments of its own training."""

import pytest
from json_requests import Act, encode_request

from relaax.errors import InvalidState
from relaax.protocol import binary
from relaax.protocol.binary import Hello
from relaax.server.rlx_server.worker.session import begin
from relaax.server.rlx_server.worker.settings import WorkerSettings


class Config:
    """Asks for nothing."""

    def observation_space(self):
        return None

    def action_space(self):
        return None


def settings(run):
    return WorkerSettings(
        None, Config(), "localhost:1", timeout_s=None, open_connection=None,
        max_frame_bytes=None, max_environments=1, run=run,
    )  # fmt: skip


@pytest.mark.parametrize(("theirs", "own"), [("a-1", "a-1"), (None, "a-1"), ("a-1", None)])
def test_an_environment_of_this_or_of_an_unknown_training_is_welcomed(theirs, own):
    hello = Hello("", "", run=theirs)
    assert begin(settings(own), binary.encode_hello(hello)).hello == hello


def test_an_environment_of_another_training_is_refused_with_both_names_and_a_remedy():
    hello = binary.encode_hello(Hello("", "", run="pong-1"))
    with pytest.raises(InvalidState) as refused:
        begin(settings("cartpole-2"), hello)
    assert str(refused.value) == (
        "this environment belongs to the training pong-1, and this server to the training "
        "cartpole-2 (RELAAX_RUN): two trainings were given the same address; stop one of them, or "
        "give it other ports (--bind in its YAML file, and the addresses that its Procfile names)"
        ". Where both are parts of one training, set RELAAX_RUN to the same name for both"
    )


def test_version_1_cannot_say_it_which_a_server_that_knows_its_training_says_once(caplog):
    first = encode_request(Act([1.0]))
    begin(settings(None), first)
    assert "training" not in caplog.text
    known = settings("cartpole-2")
    for _ in range(2):
        assert begin(known, first).welcome is None
    (line,) = caplog.messages
    assert line.startswith("doubtful: a client of version 1 of the protocol carries no name of its")
    assert "another training than cartpole-2 would be taken too" in line
