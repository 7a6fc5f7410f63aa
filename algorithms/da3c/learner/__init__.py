"""DA3C's learner: turns rollouts into updates of the global parameters."""

from .background import BackgroundLearner
from .learner import Learner, Policy

__all__ = ["BackgroundLearner", "Learner", "Policy"]
