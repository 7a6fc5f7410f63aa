"""Written policies act as servers do: every algorithm, and every kind of observation and action."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from processes import COMMANDS, Process, Training
from trained import CONTINUOUS, DISCRETE, SECTIONS, algorithm_of, save_trained, section_of

from relaax.algorithm_base import Evaluation
from relaax.client import VectorClient
from relaax.configuration import AwsAccess
from relaax.server.exploitation import (
    CheckpointReader,
    agent_to_exploit,
    exploiting,
    restore_trained,
)
from relaax.server.export.check import Comparison, compared
from relaax.server.export.files_tf import read_onnx, read_saved_model, write_onnx, write_saved_model
from relaax.server.export.graph_tf import PolicyGraph
from relaax.server.export.signature import signature_of, zeros_of

pytestmark = pytest.mark.integration

SENSES = {"camera": [20, 20, 3], "depth": [20, 20], "speed": [], "arm/joints": [3]}

SCALED = {**DISCRETE, "action_size": 2, "lstm": False}
FAR = {**DISCRETE, "action_size": 2, "continuous": True}

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, section) for name, section in SECTIONS.items()},
    "image with a history": ("da3c", {**DISCRETE, "state_size": [20, 20], "history_len": 4}),
    "vector with a history": ("dqn", {**DISCRETE, "history_len": 3, "dueling": True}),
    "distributional dqn": (
        "dqn", {**DISCRETE, "distributional": {"atoms": 11, "low": -5, "high": 5}},
    ),
    "dict, mask and lstm": (
        "da3c",
        {
            **DISCRETE, "state_size": {**SENSES, "allowed": [3]}, "action_mask": "allowed",
            "history_len": {"camera": 2, "speed": 3}, "lstm": True, "lstm_size": 16,
        },
    ),
    "several choices": ("da3c", {**DISCRETE, "action_size": [2, 3, 4]}),
    "bits": ("ppo", {"state_size": [4], "action_bits": 5, "hidden_layers": [16]}),
    "filter and history": (
        "ppo",
        {**DISCRETE, "state_size": {"a": [4], "b": [2]}, "filter_states": True, "history_len": 2},
    ),
    "filtered transitions": ("sac", {**CONTINUOUS, "filter_states": True, "history_len": 2}),
    "twin critics": ("ddpg", {**CONTINUOUS, "twin": True, "exploration": {"sigma": 0.1}}),
    "a narrow range": ("sac", {**CONTINUOUS, "action_low": -1e-5, "action_high": 1e-5}),
    "far from 0": ("ppo", {**FAR, "action_low": [1e6 - 0.3, 3], "action_high": [1e6 + 0.3, 7]}),
    "a scale": ("da3c_cont", {**SCALED, "action_scale": [20, 1e-3], "action_high": [7, 1e-3]}),
    "a critic that sees more": (
        "ppo",
        {
            **DISCRETE, "hidden_layers": None, "state_size": {"a": [4], "b": [2]},
            "network": {"heads": {"policy": {"sees": ["a"]}, "value": {"sees": ["a", "b"]}}},
        },
    ),
    "layers of its own": (
        "ppo",
        {
            **DISCRETE, "hidden_layers": None,
            "network": {
                "layers": [{"dense": {"units": 8, "activation": "silu"}}, {"layer_norm": {}}],
                "heads": {"policy": [{"dense": {"units": 8, "activation": "elu"}}]},
            },
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("variant", "has_float_images"),
    [*((variant, False) for variant in VARIANTS), ("image with a history", True)],
)
def test_files_act_as_the_agent_on_1000_observations(
    variant: str, has_float_images: bool, tmp_path: Path
):
    name, section = VARIANTS[variant]
    section = {key: value for key, value in section.items() if value is not None}
    save_trained(name, tmp_path, section)
    algorithm, config = algorithm_of(name, section)
    reader = CheckpointReader(tmp_path, None, AwsAccess(), "latest", "--checkpoint")
    trained = restore_trained(algorithm, config, reader)
    policy = config.describe_policy(trained.values.vector)
    signature = signature_of(policy, has_float_images)
    mask = policy.action_mask and policy.action_mask.name
    agent = agent_to_exploit(algorithm, config, trained.bridge(), 0)
    with closing(agent), closing(exploiting(agent, Evaluation.DETERMINISTIC)) as acting:
        graph = PolicyGraph(policy, signature)
        write_saved_model(graph, tmp_path / "policy")
        write_onnx(graph, tmp_path / "policy.onnx")
        for written in (read_saved_model(tmp_path / "policy"), read_onnx(tmp_path / "policy.onnx")):
            assert compared(signature, mask, acting, written) == Comparison(1000, different=0)


def test_of_a_narrow_range_another_policy_is_found_out(tmp_path: Path):
    """By the size of its actions: all are near 0."""
    assert differences("sac", VARIANTS["a narrow range"][1], tmp_path) > 100


def test_another_policy_is_found_out(tmp_path: Path):
    """The comparison can fail."""
    assert differences("da3c", DISCRETE, tmp_path) > 100


def differences(name: str, section: dict[str, Any], tmp_path: Path) -> int:
    """Compare two policies with different parameters; return how many actions differ."""
    algorithm, config = algorithm_of(name, section)
    policies = []
    for seed in (1, 2):
        vector = save_trained(name, tmp_path / str(seed), section, seed=seed)
        policies.append(config.describe_policy(vector))
    reader = CheckpointReader(tmp_path / "1", None, AwsAccess(), "latest", "--checkpoint")
    bridge = restore_trained(algorithm, config, reader).bridge()
    signature = signature_of(policies[0])
    agent = agent_to_exploit(algorithm, config, bridge, 0)
    with closing(agent), closing(exploiting(agent, Evaluation.DETERMINISTIC)) as acting:
        write_onnx(PolicyGraph(policies[1], signature), tmp_path / "other.onnx")
        comparison = compared(signature, None, acting, read_onnx(tmp_path / "other.onnx"))
    assert not comparison.is_close
    return comparison.different


def export(training: Training, *flags: str) -> Process:
    arguments = [str(COMMANDS / "relaax-export"), "--config", str(training.yaml), *flags]
    return training.start("relaax-export", arguments)


def test_the_command_writes_what_a_server_answers_over_the_wire(training: Training):
    section = {**SECTIONS["da3c_cont"], "history_len": 2}
    training.configure(section_of("da3c_cont", section))
    vector = save_trained("da3c_cont", training.checkpoints, section)
    training.start_rlx_server("--exploit")
    command = export(training, "--onnx", "policy.onnx", "--saved-model", "policy")
    assert command.wait() == 0, command.output()
    assert command.output().count("1,000 of 1,000 actions are those of the server") == 2
    assert "takes lstm: float32 [B, 2, 128]" in command.output()
    assert (training.directory / "policy" / "saved_model.pb").is_file()
    session = onnxruntime.InferenceSession(str(training.directory / "policy.onnx"))
    assert session.get_inputs()[0].shape == ["environments", 4]
    _, config = algorithm_of("da3c_cont", section)
    remembered = zeros_of(signature_of(config.describe_policy(vector)), 50)
    names = [output.name for output in session.get_outputs()]
    states = np.random.default_rng(5).normal(0, 2, (20, 50, 4)).astype(np.float32)
    with VectorClient(training.rlx_server_url, 50, timeout_s=60) as client:
        for step, of_step in enumerate(states):
            ends = np.arange(50) % 7 == step % 7
            if step == 0:
                answered, starts = client.init(of_step), np.ones(50, np.bool_)
            else:
                answered, starts = client.send(np.zeros(50), of_step, terminated=ends), ends
            inputs = {"state": of_step, "start": starts, **remembered}
            outputs = dict(zip(names, session.run(names, inputs), strict=True))
            remembered = {name: outputs[f"next_{name}"] for name in remembered}
            np.testing.assert_allclose(outputs["action"], answered, rtol=1e-4, atol=1e-5)


def test_what_cannot_be_written_is_said(training: Training):
    for flags, said in (
        ((), "give --onnx FILE or --saved-model DIR"),
        (("--onnx", "p.onnx"), "there is no directory of checkpoints"),
    ):
        command = export(training, *flags)
        assert command.wait() == 2
        assert said.lower() in command.output().lower()
        assert "Traceback" not in command.output()
