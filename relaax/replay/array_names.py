"""Names of arrays that belong together: those that begin alike."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


def below(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays whose names begin with ``prefix``, by the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def named(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays with ``prefix`` before their names."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}
