"""Versions of a policy are kept while it is learnt, and played by those that name them."""

from contextlib import closing

import numpy as np
import pytest
from processes import SMALL_PPO, Training, free_port, wait_for

from relaax.algorithm_base.inference import Question
from relaax.inference import inference_pb2, inference_pb2_grpc
from relaax.inference.client import InferenceClient
from relaax.inference.servers import GivenServers
from relaax.inference.wire import forms_of
from relaax.net.channels import open_channel
from relaax.parameters import Bridge
from relaax.parameters.database import LATEST, DatabaseName, DatabaseRoot, ParameterDatabase

pytestmark = pytest.mark.integration

NAME = DatabaseName("cartpole", "one", "default")


@pytest.fixture(name="database")
def _database(training: Training) -> ParameterDatabase:
    """The database of a training that tags each tenth version, or a few more."""
    place = training.directory / "database"
    options = {"database-dir": str(place), "database-name": "/".join(NAME)}
    training.configure(SMALL_PPO, {**options, "push-frequency-steps": 10})
    training.start_parameter_server()
    return DatabaseRoot(place).reader(NAME)


def tags_of(database: ParameterDatabase) -> dict[str, int]:
    return {tag: version for tag, version in database.list_tags().items() if tag != LATEST}


def test_an_evaluating_actor_plays_a_tagged_version_while_the_training_goes_on(
    training: Training, database: ParameterDatabase, bridge: Bridge
):
    training.start_learner()
    training.start_actors(1)
    tag, version = wait_for(lambda: list(tags_of(database).items()), "a tagged version")[0]
    wait_for(lambda: database.version_of() > version, "a later version")
    flags = ("--mode", "eval_deterministic", "--episodes", "3", "--policy-identifier", tag)
    assert training.start_actors(1, *flags).wait() == 0
    wait_for(lambda: bridge.evaluations().count == 3, "three evaluations")
    assert {iteration for iteration, _ in bridge.evaluations().scores} == {version}
    assert bridge.pull().info.iteration > version


def test_a_parameter_server_that_is_killed_goes_on_with_its_database(
    training: Training, database: ParameterDatabase
):
    (killed,) = training.processes
    training.start_learner()
    training.start_actors(1)
    before = wait_for(lambda: tags_of(database), "a tagged version")
    killed.kill()
    began_with = database.version_of()
    training.start_parameter_server()
    wait_for(lambda: database.version_of() > began_with, "a later version")
    assert before.items() <= tags_of(database).items()
    port = f"127.0.0.1:{free_port()}"
    other = ("--bind", port, "--checkpoint-dir", str(training.directory / "other"))
    second = training.start_command("relaax-parameter-server", *other)
    assert second.wait() == 2
    assert "a parameter database has one writer" in second.output()


def test_an_inference_server_chooses_by_a_tagged_version(
    training: Training, database: ParameterDatabase, bridge: Bridge
):
    training.start_learner()
    training.start_actors(1)
    tag, version = wait_for(lambda: list(tags_of(database).items()), "a tagged version")[0]
    address = f"127.0.0.1:{free_port()}"
    words = ("--bind", address, "--parameter-server", training.parameter_server_url)
    server = training.start_command("relaax-inference-server", *words, "--policy-identifier", tag)
    server.says("choosing at ")
    wait_for(lambda: bridge.pull().info.iteration > version, "a later version")
    with open_channel(address) as channel:
        stub = inference_pb2_grpc.InferenceStub(channel)
        forms = forms_of(stub.Describe(inference_pb2.Nothing()))
    none = np.zeros((2, 1, 0), np.float32)
    question = Question("default", np.zeros((1, 4), np.float32), none, np.zeros((1, 2), np.float32))
    with closing(InferenceClient(GivenServers([address]))) as client:
        client.expect(forms)
        assert client.choose(question).version.number == version
