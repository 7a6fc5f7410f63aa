"""The command ``relaax-rlx-server``."""

import contextlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relaax.server.common.configuration import leave_undisturbed, load_rlx_server, run_command

if TYPE_CHECKING:
    from relaax.server.common.algorithm_loader import Algorithm


def main() -> int:
    """Run an RLX server; the exit status says how it ended."""
    status = run_command("relaax-rlx-server", lambda: _serve(sys.argv[1:]))
    leave_undisturbed()
    return status


def _serve(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))  # while imports go on
    configuration = load_rlx_server(arguments)
    _keep_numeric_libraries_single_threaded()
    # Imported only now: numpy reads the environment when it is imported.
    from relaax.errors import ConfigurationError
    from relaax.server.common.algorithm_loader import load_algorithm, make_config
    from relaax.server.common.logs import start_logging
    from relaax.server.rlx_server.admission import Admission
    from relaax.server.rlx_server.processes import WorkerSettings
    from relaax.server.rlx_server.server import RlxServer, listen

    options = configuration.options
    start_logging(options.log_level)
    try:
        listener = listen(options.bind)
    except OSError as error:
        reason = str(error.strerror or error).split(" (while attempting")[0]  # the address again
        raise ConfigurationError(f"--bind: cannot listen at {options.bind}: {reason}") from error
    algorithm = load_algorithm(configuration.algorithm.directory)
    config = make_config(algorithm, configuration.algorithm)
    is_batched = options.inference == "batched"
    if is_batched:
        _require_batches(algorithm, configuration.algorithm.directory)
    else:
        _ = algorithm.Agent  # imports it, and TensorFlow, once for all workers to share
    _allow_many_files()
    settings = WorkerSettings(
        algorithm=algorithm,
        config=config,
        parameter_server=str(options.parameter_server),
        timeout_s=options.timeout,
        max_frame_bytes=options.max_frame_bytes,
        max_environments=options.max_environments,
    )
    admission = Admission(options.first_worker_mib())
    return RlxServer(listener, settings, admission, is_batched).run()


def _require_batches(algorithm: "Algorithm", directory: Path) -> None:
    from relaax.errors import ConfigurationError

    if not sys.platform.startswith("linux"):
        raise ConfigurationError("--inference: batched needs Linux; use inline here")
    if not algorithm.knows_batches:
        raise ConfigurationError(
            f"--inference: batched needs an algorithm that exports BatchAgent and Preprocessor; "
            f"{directory} does not, use inline"
        )


def _allow_many_files() -> None:
    """Allow as many open files as the system lets us: each connection takes some."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS names a limit that it does not accept
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _keep_numeric_libraries_single_threaded() -> None:
    """Let BLAS start no thread: none may exist when a worker is forked."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")


if __name__ == "__main__":
    sys.exit(main())
