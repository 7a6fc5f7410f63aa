"""The common parts of SAC, DDPG and DQN, which learn from stored transitions.

``settings``      the keys that all of them have
``config``        the same as the servers want it
``critics``       networks that value actions
``learner``       makes an update of each batch
``update_tf``     an update of all that is learnt, as one graph; the values that critics give
"""

from .config import OffPolicyConfig
from .learner import OffPolicyLearner, TransitionBatch, Update
from .settings import (
    ActionValueSettings,
    ContinuousSettings,
    DiscreteSettings,
    ExploringSettings,
    OffPolicySettings,
    TargetSettings,
)

__all__ = [
    "ActionValueSettings", "ContinuousSettings", "DiscreteSettings", "ExploringSettings",
    "OffPolicyConfig", "OffPolicyLearner", "OffPolicySettings", "TargetSettings", "TransitionBatch",
    "Update"
]  # fmt: skip
