"""How a process runs TensorFlow."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from relaax.processes.cgroups import usable_cores


def import_tensorflow() -> None:
    """Import TensorFlow for all modules that follow, without its warnings of absent GPUs.

    Importing starts none of its threads, so that a process may still fork. It leaves out Keras,
    which is a quarter of the time and 64 MiB, until somebody imports ``keras`` or uses
    ``tf.keras``.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _native_stderr_discarded(), _keras_left_out():
        import tensorflow  # noqa: F401


def configure_tensorflow(gpu: bool, has_the_machine: bool, splits_operations: bool = False) -> None:
    """Give this process its threads and its share of a GPU; before the first operation.

    With ``gpu``, memory of GPUs is taken as it is needed: else the first process that uses one
    would keep all of it from the others, a learner from the workers beside it. Without, it sees no
    GPU.

    Where many workers share a machine, each with one thread is faster than each with all of them.
    A process that has the machine to itself gets a thread for each core that it may use, and two
    at least: with one, choosing actions would wait for the gradients that are computed beside it.
    With ``splits_operations`` one operation may use all of these cores, which makes gradients
    faster where nothing goes on beside them.
    """
    import tensorflow as tf

    cores = usable_cores() if has_the_machine else 1
    # Threads that have been started stay as they are: the first agent of a process decides.
    with suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(cores if splits_operations else 1)
        tf.config.threading.set_inter_op_parallelism_threads(
            max(2, cores) if has_the_machine else 1
        )
    if not gpu:
        tf.config.set_visible_devices([], "GPU")
        return
    for device in tf.config.list_physical_devices("GPU"):
        with suppress(RuntimeError):  # the same: it is in use
            tf.config.experimental.set_memory_growth(device, True)


def has_gpu() -> bool:
    """Return whether TensorFlow sees a GPU in this process."""
    import tensorflow as tf

    return bool(tf.config.get_visible_devices("GPU"))


@contextmanager
def _keras_left_out() -> Iterator[None]:
    """Let TensorFlow find no Keras, which it imports if it is there; unless it is imported already.

    ``None`` is how Python notes a module that cannot be imported.
    """
    if "keras" in sys.modules:
        yield
        return
    sys.modules["keras"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["keras"]


@contextmanager
def _native_stderr_discarded() -> Iterator[None]:
    """Discard the output of C++ to file descriptor 2; Python's errors are still raised."""
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
