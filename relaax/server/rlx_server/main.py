"""The command ``relaax-rlx-server``."""

import os
import select
import signal
import sys

from relaax.configuration import leave_undisturbed, load_rlx_server, run_command


def main() -> int:
    """Run an RLX server; it ends with an exit status."""
    status = run_command("relaax-rlx-server", lambda: _serve(sys.argv[1:]))
    leave_undisturbed()
    return status


def _serve(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))  # while imports go on
    configuration = load_rlx_server(arguments)
    _keep_numeric_libraries_single_threaded()
    # Imported only now: numpy reads the environment when it is imported.
    from relaax.configuration.access import begin_server
    from relaax.errors import ConfigurationError
    from relaax.net.listening import listen_as_told, require_allowed
    from relaax.server.rlx_server.wiring import rlx_server

    options = configuration.options
    begin_server(options, "relaax-rlx-server")
    if not hasattr(select, "epoll"):
        raise ConfigurationError("relaax-rlx-server needs Linux; clients run anywhere")
    require_allowed(http_bind=options.http_bind)  # --bind is the next one
    listener = listen_as_told(options.bind, "--bind")
    return rlx_server(configuration, listener).run()


def _keep_numeric_libraries_single_threaded() -> None:
    """Let BLAS start no thread: none may exist when a worker is forked."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")


if __name__ == "__main__":
    sys.exit(main())
