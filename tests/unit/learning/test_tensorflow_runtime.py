"""What TensorFlow is given in a process: threads for its cores, and memory of GPUs as needed."""

import os
import subprocess
import sys

#: A GPU is the one thing here that most machines have not: its place is taken by a name.
PROGRAM = """
import sys
from relaax.learning.tensorflow_runtime_tf import configure_tensorflow, import_tensorflow

import_tensorflow()
import tensorflow as tf

grown = []
tf.config.list_physical_devices = lambda kind=None: ["the first GPU", "the second GPU"]
tf.config.experimental.set_memory_growth = lambda device, grows: grown.append((device, grows))
configure_tensorflow(gpu=True, has_the_machine=True, splits_operations=True)
threading = tf.config.threading
print(threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads())
print(grown)
"""


def test_threads_are_those_of_usable_cores_and_memory_of_gpus_grows() -> None:
    one = {min(os.sched_getaffinity(0))}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        preexec_fn=lambda: os.sched_setaffinity(0, one),
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout.splitlines()  # fmt: skip
    assert found[0] == "1 2"
    assert found[1] == "[('the first GPU', True), ('the second GPU', True)]"
