"""The common parts of methods that try many parameters, and score each by whole episodes.

``settings``    the keys that all of them have
``config``      the same as the servers want it
``imprint``     the numbers behind parameters: which candidates they are, and of what
``learner``     gathers the returns of a generation of candidates
"""

from .config import PopulationConfig
from .imprint import Imprint, noise_of, stamp_of
from .learner import PopulationLearner, names_of, place_of
from .settings import PopulationSettings

__all__ = [
    "Imprint", "PopulationConfig", "PopulationLearner", "PopulationSettings", "names_of",
    "noise_of", "place_of", "stamp_of"
]  # fmt: skip
