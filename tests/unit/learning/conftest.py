"""What tests of the learning library share."""

import pytest
from interpreted import interpreted  # noqa: F401


@pytest.fixture(scope="session", name="tensorflow")
def _tensorflow() -> None:
    """TensorFlow as a worker runs it: configured before its first operation."""
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow, import_tensorflow

    import_tensorflow()
    configure_tensorflow(gpu=False, has_the_machine=False)
