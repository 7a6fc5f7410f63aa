"""How a worker runs TensorFlow."""

import tensorflow as tf


def configure_tensorflow(gpu: bool) -> None:
    """Give this process one thread and, unless ``gpu``, no GPU; before the first operation.

    Many workers share a machine: each with one thread is faster than each with all of them.
    """
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if not gpu:
        tf.config.set_visible_devices([], "GPU")
