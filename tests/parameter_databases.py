"""Values and names for the tests of parameter databases."""

import numpy as np

from relaax.parameters.database import DatabaseName, PolicyValues

NAME = DatabaseName("atari", "trial-1", "main")


def values(number):
    """Values that show which version they are of."""
    return PolicyValues(np.full(3, number, np.float32), 10 * number, np.ones(2, np.float32))
