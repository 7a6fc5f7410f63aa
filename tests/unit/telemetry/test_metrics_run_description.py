"""TensorBoard shows a run's configuration as text and as hyperparameters."""

from pathlib import Path

import pytest
import yaml

from relaax.address import Address
from relaax.telemetry.training import EventWriter, describe_run

PARAMETERS = {
    "action_size": 2,
    "state_size": [4],
    "seed": None,
    "vtrace": True,
    "initial_learning_rate": 1e-3,
    "RMSProp": {"decay": 0.99},
}
OPTIONS = {"--bind": Address("localhost", 7000), "--metrics-dir": Path("metrics")}


@pytest.fixture(name="run")
def _run(tmp_path):
    """What TensorBoard reads of a run."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    description = describe_run(OPTIONS, {"--workers": 2}, "da3c", PARAMETERS)
    writer = EventWriter(tmp_path, lambda: 1, description)
    writer.begin(0)
    writer.scalar("episode/reward", 5.0)
    writer.close()
    return EventAccumulator(str(tmp_path)).Reload()


def test_the_configuration_is_shown_as_text(run):
    (event,) = run.Tensors("configuration/text_summary")
    text = event.tensor_proto.string_val[0].decode()
    assert yaml.safe_load(text.removeprefix("```yaml").removesuffix("```")) == {
        "relaax-parameter-server": {"--bind": "localhost:7000", "--metrics-dir": "metrics"},
        "relaax-rlx-server": {"--workers": 2},
        "algorithm": {"name": "da3c", **PARAMETERS},
    }


@pytest.mark.parametrize("content", ['{"layers": [{"dense": 8}]}', "layers: [dense: 8]"])
def test_the_text_has_the_content_of_a_networks_file(tmp_path, content):
    path = tmp_path / "network.json"
    path.write_text(content)
    text, *_ = describe_run({}, None, "da3c", {"network": str(path)})
    written = text.value[0].tensor.string_val[0].decode()
    assert yaml.safe_load(written.removeprefix("```yaml").removesuffix("```"))["algorithm"] == {
        "name": "da3c",
        "network": {"layers": [{"dense": 8}]},
    }


def test_the_parameters_of_the_algorithm_are_hyperparameters(run):
    from tensorboard.plugins.hparams import plugin_data_pb2

    contents = run.PluginTagToContent("hparams")
    data = plugin_data_pb2.HParamsPluginData
    session = data.FromString(contents["_hparams_/session_start_info"]).session_start_info
    values = {name: getattr(v, v.WhichOneof("kind")) for name, v in session.hparams.items()}
    assert values == {
        "algorithm": "da3c",
        "action_size": 2,
        "state_size": "[4]",
        "seed": "None",
        "vtrace": True,
        "initial_learning_rate": 1e-3,
        "RMSProp.decay": 0.99,
    }
    experiment = data.FromString(contents["_hparams_/experiment"]).experiment
    assert {info.name for info in experiment.hparam_infos} == set(values)
    assert [info.name.tag for info in experiment.metric_infos] == [
        "episode/reward", "episode/length", "server/steps_per_second",
    ]  # fmt: skip


def test_scalars_follow_the_description(run):
    assert run.Tags()["scalars"] == ["episode/reward"]
