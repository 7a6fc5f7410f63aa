"""Versions of a policy are kept while it is learnt, and played by those that name them."""

import os
import signal
from contextlib import closing

import numpy as np
import pytest
from processes import COMMANDS, SMALL_PPO, Training, free_port, wait_for

from relaax.algorithm_base.inference import Question
from relaax.inference import inference_pb2, inference_pb2_grpc
from relaax.inference.client import InferenceClient
from relaax.inference.servers import GivenServers
from relaax.inference.wire import forms_of
from relaax.net.channels import open_channel
from relaax.parameters import Bridge
from relaax.parameters.database import LATEST, DatabaseName, DatabaseRoot, ParameterDatabase, Type

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


def test_an_experiment_plays_versions_of_the_past_while_it_trains(
    training: Training, monkeypatch: pytest.MonkeyPatch
):
    """In the actor, drawn by a query at each reset, and at a policy worker."""
    monkeypatch.setenv("PATH", f"{COMMANDS}{os.pathsep}{os.environ['PATH']}")
    (training.directory / "past.py").write_text(PAST)
    words = [str(COMMANDS / "relaax-experiment"), "run", "past.py", "-f", "one"]
    trial = training.start("trial", words)
    for actors in ("actors1", "actors2"):
        trial.says(rf"{actors} +\|.* episodes [1-9]")
    trial.signal(signal.SIGTERM)
    trial.wait()
    place = training.directory / "training/experiments/past/one/policies/default/database"
    root = DatabaseRoot(place, Type.METADATA)
    assert root.list_names() == [DatabaseName("past", "one", "default")]
    with closing(root.reader(DatabaseName("past", "one", "default"))) as database:
        version = max(tags_of(database).values())
        assert database.metadata_of(version) is not None
        assert database.version_of() >= version > 0


PAST = """
from relaax.experiments import *

POLICY = Policy(type_="section", args={"state_size": [4], "action_size": 2, "hidden_layers": [8]})
DATABASE = ParameterDB(type_=ParameterDB.Type.METADATA)
KEYS = {
    "episode_len": 16, "rollouts_per_batch": 4, "passes": 2, "minibatches": 2,
    "seed": 1,
}


def inline(identifier):
    return InferenceStream(
        type_="INLINE", stream_name="", policy=POLICY, policy_name="default",
        policy_identifier=identifier, parameter_db=DATABASE,
    )


def actor(stream, samples):
    return ActorWorker(
        env=Environment(type_="CartPole-v1"), inference_streams=[stream], sample_streams=[samples],
        agent_specs=[AgentSpec(index_regex=".*", inference_stream_idx=0, sample_stream_idx=0)],
    )


class Past(Experiment):
    def scheduling_setup(self):
        one = TasksGroup(count=1, scheduling=Scheduling())
        three = TasksGroup(count=3, scheduling=Scheduling())
        return ExperimentScheduling(actors=three, policies=one, trainers=one)

    def initial_setup(self):
        null = SampleStream(type_="NULL")
        return ExperimentConfig(
            actors=[
                actor(inline("latest"), "default"),
                actor(inline({"$match": {"version": {"$gt": 3}}}), null),
                actor("first", null),
            ],
            policies=[
                PolicyWorker(
                    policy_name="default", inference_stream="first", policy=POLICY,
                    policy_identifier=[{"$sort": {"version": 1}}, {"$limit": 1}],
                    parameter_db=DATABASE,
                )
            ],
            trainers=[
                TrainerWorker(
                    policy_name="default", trainer=Trainer(type_="ppo", args=KEYS), policy=POLICY,
                    sample_stream="default", parameter_db=DATABASE, push_frequency_steps=5,
                )
            ],
        )


register_experiment("past", Past)
"""
