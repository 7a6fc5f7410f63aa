"""How connections share workers makes no difference to what a test promises."""

import pytest

SHARED_WORKERS = 2

#: Run a test, or a module's tests, with a worker for each connection and with shared workers.
IN_BOTH_MODES = pytest.mark.parametrize("training", ["connection", SHARED_WORKERS], indirect=True)

SHARED = pytest.mark.parametrize("training", [SHARED_WORKERS], indirect=True)
