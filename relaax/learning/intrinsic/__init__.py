"""Intrinsic rewards: a part that pays an agent for new states, whatever its algorithm is.

``settings``    the keys of the section ``intrinsic``
``networks``    the networks of such a part, and the statistics that it needs
``icm_tf``      curiosity by self-supervised prediction: rewards and loss
``rnd_tf``      random network distillation: rewards and loss
``steps_tf``    steps as these two see them
``part_tf``     the networks, evaluated for the steps of rollouts
``learner_tf``  stands before an algorithm's learner: adds rewards to its rollouts, and learns, too

An algorithm knows nothing of them: its learner is given rollouts with other rewards. The parameters
of a part lie behind those of the algorithm's network, moved by the same optimiser. Where a
learner sets its values itself, the part has parameters and an optimiser of its own.
"""

from relaax.learning.intrinsic.networks import IntrinsicNetworks
from relaax.learning.intrinsic.settings import IntrinsicSection

__all__ = ["IntrinsicNetworks", "IntrinsicSection"]
