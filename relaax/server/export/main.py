"""The command ``relaax-export``."""

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn

from relaax.algorithm_base import BatchAgentBase, ConfigBase, Evaluation, Saver
from relaax.configuration import ExportOptions, leave_at_once, load_export, run_command
from relaax.configuration.algorithm_loader import load_algorithm, make_config
from relaax.configuration.exit_status import FAILURE
from relaax.errors import ConfigurationError
from relaax.learning.described_policy import DescribedPolicy
from relaax.server.exploitation import (
    CheckpointReader,
    Trained,
    agent_to_exploit,
    exploiting,
    restore_trained,
)
from relaax.server.export.check import compared
from relaax.server.export.signature import Signature, signature_of
from relaax.telemetry.logs import start_logging

#: The files of a SavedModel's folder.
_SAVED_MODEL = "saved_model.pb"

_log = logging.getLogger(__name__)


@contextmanager
def unchecked(place: Path) -> Iterator[Path]:
    """Yield a temporary place beside ``place``, for a file or a folder.

    It is removed at the end, unless ``keep`` was called.
    """
    path = place.with_name(f".{place.name}.unchecked")
    _remove(path)
    try:
        yield path
    finally:
        _remove(path)


def keep(written: Path, place: Path) -> None:
    """Move the written file to its place; a file or a SavedModel that was there is removed."""
    if place.is_dir():
        shutil.rmtree(place)
    os.replace(written, place)


def require_room(directory: Path) -> None:
    """Raise ConfigurationError where a folder would go that is no SavedModel."""
    if directory.is_dir() and any(directory.iterdir()) and not (directory / _SAVED_MODEL).exists():
        raise ConfigurationError(
            f"--saved-model: {directory} holds other files than a SavedModel: name another folder"
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def main() -> NoReturn:
    """Write a policy, and end with an exit status."""
    leave_at_once(run_command("relaax-export", lambda: _export(sys.argv[1:])))


def _export(arguments: list[str]) -> int:
    configuration = load_export(arguments)
    options = configuration.options
    start_logging(options.log_level, options.log_file, "relaax-export")
    algorithm = load_algorithm(configuration.algorithm.directory)
    config = make_config(algorithm, configuration.algorithm)
    trained = restore_trained(algorithm, config, _checkpoints(options))
    policy = _described(config, trained, configuration.algorithm.directory)
    signature = signature_of(policy, options.float_images)
    print(f"global step {trained.global_t:,} from {trained.location}", flush=True)
    algorithm.prepare_to_fork()  # imports TensorFlow, without its own log
    # The agent comes first: it configures TensorFlow, which cannot be done later.
    agent = agent_to_exploit(algorithm, config, trained.bridge(), 0)
    with closing(agent), closing(exploiting(agent, Evaluation.DETERMINISTIC)) as acting:
        are_same = _write(policy, signature, acting, options)
    print("\n".join(input_lines(signature)))
    if not are_same:
        _log.error("files that act unlike the server were removed: see the lines above")
        return FAILURE
    return 0


def _write(
    policy: DescribedPolicy, signature: Signature, agent: BatchAgentBase, options: ExportOptions
) -> bool:
    """Write all files that act as ``agent`` does; return whether these are all."""
    # Imported here: a mistake in the configuration is told before TensorFlow is imported.
    from relaax.server.export.files_tf import (
        read_onnx,
        read_saved_model,
        require_libraries,
        write_onnx,
        write_saved_model,
    )
    from relaax.server.export.graph_tf import PolicyGraph

    if options.onnx is not None:
        require_libraries()
    if options.saved_model is not None:
        require_room(options.saved_model)
    mask = None if policy.action_mask is None else policy.action_mask.name
    graph, are_same = PolicyGraph(policy, signature), True
    for form, place, write, read in (
        ("TensorFlow SavedModel", options.saved_model, write_saved_model, read_saved_model),
        ("ONNX", options.onnx, write_onnx, read_onnx),
    ):
        if place is None:
            continue
        with unchecked(place) as path:
            write(graph, path)
            comparison = compared(signature, mask, agent, read(path))
            if comparison.is_close:
                keep(path, place)
        are_same = are_same and comparison.is_close
        print(f"{form}: {place}; {comparison}", flush=True)
    return are_same


def _described(config: ConfigBase, trained: Trained, directory: Path) -> DescribedPolicy:
    """Return the export of an algorithm; ConfigurationError if it does not describe one."""
    vector = trained.values.vector
    policy = None if vector is None else config.describe_policy(vector)
    if not isinstance(policy, DescribedPolicy):
        raise ConfigurationError(
            f"algorithm {directory}: Config.describe_policy returns no DescribedPolicy, and only "
            "the algorithm knows what its actions depend on; relaax-rlx-server --exploit may "
            "serve it all the same"
        )
    return policy


def _checkpoints(options: ExportOptions) -> Saver:
    return CheckpointReader(
        options.checkpoint_dir,
        options.checkpoint_aws_s3,
        options.aws,
        options.checkpoint,
        "--checkpoint",
    )


def input_lines(signature: Signature) -> list[str]:
    """Return lines about a file's inputs."""
    return [
        f"  takes {each.name}: {each.dtype} [{', '.join(map(str, ('B', *each.shape)))}]"
        for each in signature.inputs
    ]


if __name__ == "__main__":
    main()
