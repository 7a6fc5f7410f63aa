"""An algorithm that comes with RELAAX, to build on."""

from pathlib import Path
from types import ModuleType

from relaax.configuration.algorithm_loader import load_algorithm
from relaax.configuration.algorithm_location import locate_algorithm


def bundled(name: str) -> ModuleType:
    """Return the package of the algorithm ``name``; ConfigurationError for one that is not there.

    So an algorithm may have another one's builder, wherever its own folder is.
    """
    return load_algorithm(locate_algorithm({"name": name}, Path(__file__))).module
