"""What RELAAX has learnt, without actions that are drawn, as connections that evaluate play it."""

import re
import subprocess
from pathlib import Path
from typing import Any

from launch import Launch
from learning_cases import Case
from relaax_runs import environments
from servers import running_servers

#: Added to a training's seed for that of its evaluation.
EVALUATION_SEED = 10_000

#: An evaluation that has not ended by then has failed.
DEADLINE_S = 1800.0


def evaluated(
    directory: Path, section: dict[str, Any], checkpoints: Path, case: Case, seed: int, count: int
) -> float:
    """Return the mean return of ``count`` episodes that are played with the last checkpoint.

    Servers of its own, with their files in ``directory``, serve the checkpoint and learn nothing:
    what evaluates is not learnt from, and no learner runs.
    RuntimeError if the episodes fail.
    """
    directory.mkdir()
    options = {"checkpoint-dir": str(checkpoints), "keep-serving": True}
    with (
        running_servers(directory, section, Launch(), options) as servers,
        environments(
            servers.rlx_server_url,
            case.env_id,
            per_connection=1,
            seed=seed + EVALUATION_SEED,
            count=1,
            env_kwargs=case.env_kwargs,
            options=("--evaluate", "--episodes", str(count)),
            stdout=subprocess.PIPE,
        ) as played,
    ):
        said = played.communicate(timeout=DEADLINE_S)[0].decode()
    mean = re.search(rf"return of {count} episodes: mean (\S+),", said)
    if mean is None:
        raise RuntimeError(f"the evaluation has failed; it said:\n{said}")
    return float(mean[1])
