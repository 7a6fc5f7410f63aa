"""A policy acts in a browser's runtime, onnxruntime-web, as it does behind a server.

Node.js runs the file of that runtime that the page in ``examples/browser`` loads.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import REPOSITORY
from programs import needs, program
from trained import DISCRETE, SECTIONS, algorithm_of, save_trained

from relaax.algorithm_base import Evaluation
from relaax.configuration import AwsAccess
from relaax.server.exploitation import (
    CheckpointReader,
    agent_to_exploit,
    exploiting,
    restore_trained,
)
from relaax.server.export.check import Comparison, PolicyFunction, compared
from relaax.server.export.files_tf import write_onnx
from relaax.server.export.graph_tf import PolicyGraph
from relaax.server.export.signature import signature_of

pytestmark = [
    pytest.mark.integration,
    needs(bool(program("node") and program("npm")), "needs Node.js and npm"),
]

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "the page's: four numbers, two actions": ("da3c", {**DISCRETE, "action_size": 2}),
    "numbers, and a memory": ("da3c_cont", SECTIONS["da3c_cont"]),
    "pictures, and those before": ("da3c", {**DISCRETE, "state_size": [20, 20], "history_len": 4}),
}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which npm has installed what the page names."""
    folder = tmp_path_factory.mktemp("browser")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(REPOSITORY / "examples" / "browser" / name, folder)
    installed = subprocess.run(
        [str(program("npm")), "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    return folder


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_browsers_runtime_acts_as_the_agent_on_1000_observations(
    variant: str, runtime: Path, tmp_path: Path
):
    name, section = VARIANTS[variant]
    save_trained(name, tmp_path, section)
    algorithm, config = algorithm_of(name, section)
    reader = CheckpointReader(tmp_path, None, AwsAccess(), "latest", "--checkpoint")
    trained = restore_trained(algorithm, config, reader)
    policy = config.describe_policy(trained.values.vector)
    signature = signature_of(policy)
    write_onnx(PolicyGraph(policy, signature), tmp_path / "policy.onnx")
    agent = agent_to_exploit(algorithm, config, trained.bridge(), 0)
    with (
        closing(agent),
        closing(exploiting(agent, Evaluation.DETERMINISTIC)) as acting,
        in_node(runtime, tmp_path / "policy.onnx") as written,
    ):
        assert compared(signature, None, acting, written) == Comparison(1000, different=0)


@contextmanager
def in_node(runtime: Path, policy: Path) -> Iterator[PolicyFunction]:
    """Yield what the file does in Node.js."""
    code = Path(__file__).with_name("onnx_web.mjs")
    with subprocess.Popen(
        [str(program("node")), str(code), str(runtime), str(policy)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as node:  # fmt: skip
        assert node.stdin is not None
        assert node.stdout is not None

        def act(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            tensors = {name: _tensor(np.asarray(array)) for name, array in inputs.items()}
            node.stdin.write(json.dumps(tensors) + "\n")
            node.stdin.flush()
            answer = node.stdout.readline()
            assert answer, "Node.js has ended"
            return {name: _array(tensor) for name, tensor in json.loads(answer).items()}

        yield act


def _tensor(array: np.ndarray) -> dict[str, Any]:
    return {"type": str(array.dtype), "dims": array.shape, "data": array.ravel().tolist()}


def _array(tensor: dict[str, Any]) -> np.ndarray:
    return np.array(tensor["data"], tensor["type"]).reshape(tensor["dims"])
