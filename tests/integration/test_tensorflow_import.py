"""What a process imports of TensorFlow, in an interpreter that has nothing of it yet."""

import forking_programs
import pytest

pytestmark = pytest.mark.integration

PREAMBLE = """
import sys
from relaax.learning.tensorflow_runtime_tf import import_tensorflow
"""


def test_keras_is_left_out_until_an_algorithm_uses_it():
    program = """
        import_tensorflow()
        import tensorflow as tf
        assert not [name for name in sys.modules if name.partition(".")[0] == "keras"]
        assert tf.keras.layers.Dense(3)(tf.zeros((2, 4))).shape == (2, 3)
        import keras
        assert isinstance(tf.keras.layers.Dense(3), keras.layers.Dense)
    """
    forking_programs.run(PREAMBLE, program)


def test_keras_stays_where_it_is_imported_already():
    program = """
        import keras
        import_tensorflow()
        assert sys.modules["keras"] is keras
    """
    forking_programs.run(PREAMBLE, program)
