"""The common parts of methods that try many parameters, and score each by whole episodes.

``settings``    the keys that all of them have
``config``      the same as the servers want it
``learner``     gathers the returns of a generation of candidates
"""

from .config import PopulationConfig
from .learner import PopulationLearner, names_of, place_of
from .settings import PopulationSettings

__all__ = [
    "PopulationConfig", "PopulationLearner", "PopulationSettings", "names_of", "place_of"
]  # fmt: skip
