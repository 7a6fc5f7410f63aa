"""Where the network runs makes no difference to what a test promises."""

import pytest

#: Run a test, or a module's tests, in both modes.
IN_BOTH_MODES = pytest.mark.parametrize("training", ["inline", "batched"], indirect=True)

BATCHED = pytest.mark.parametrize("training", ["batched"], indirect=True)
