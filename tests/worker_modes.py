"""How connections share workers makes no difference to what a test promises.

A worker that learns compiles its network when it starts, which takes two seconds of a processor:
tests have as many workers as they need.
"""

import pytest

SEVERAL_WORKERS = 2

#: Run a test, or a module's tests, with a worker for each connection and with one for all.
IN_BOTH_MODES = pytest.mark.parametrize("training", ["connection", 1], indirect=True)

#: The same, for what is promised of the others when one of several workers fails.
SEVERAL_IN_BOTH_MODES = pytest.mark.parametrize(
    "training", ["connection", SEVERAL_WORKERS], indirect=True
)

SHARED = pytest.mark.parametrize("training", [1], indirect=True)

SEVERAL = pytest.mark.parametrize("training", [SEVERAL_WORKERS], indirect=True)
