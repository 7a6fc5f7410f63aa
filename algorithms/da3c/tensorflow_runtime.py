"""How a worker runs TensorFlow."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def import_tensorflow() -> None:
    """Import TensorFlow for all modules that follow, without what it says about absent GPUs.

    Importing starts none of its threads, so that a process may still fork.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _native_stderr_discarded():
        import tensorflow  # noqa: F401


def configure_tensorflow(gpu: bool) -> None:
    """Give this process one thread and, unless ``gpu``, no GPU; before the first operation.

    Many workers share a machine: each with one thread is faster than each with all of them.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if not gpu:
        tf.config.set_visible_devices([], "GPU")


@contextmanager
def _native_stderr_discarded() -> Iterator[None]:
    """Send what C++ writes to file descriptor 2 nowhere; Python's errors are still raised."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
