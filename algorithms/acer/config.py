"""The configuration of ACER, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.networks import Head, Network
from relaax.learning.off_policy.critics import critic_of
from relaax.learning.on_policy import VALUE, PolicyConfig
from relaax.learning.rollouts import DISTRIBUTION

from .settings import ContinuousAcer, DiscreteAcer, settings_of

#: The head of the values of all discrete actions.
ACTION_VALUES = "action_values"

#: The network of the advantages of continuous actions, among what is learnt.
ADVANTAGES = "advantages"


class Config(PolicyConfig):
    """The typed settings, checked once, and the networks that they describe.

    Behind each action the distribution is recorded that it was drawn from. Beside the policy the
    network has the values of all discrete actions, or of continuous ones the value of the state.
    """

    extras = (DISTRIBUTION,)
    settings: DiscreteAcer | ContinuousAcer

    def __init__(self, config: Mapping[str, Any]) -> None:
        own = settings_of(config)
        values = Head(VALUE, 1)
        if isinstance(own, DiscreteAcer):
            values = Head(ACTION_VALUES, own.action_size)
        super().__init__(config, "acer", own, own.actions, values)
        #: The network of the advantages of continuous actions; None for discrete ones.
        self.advantages: Network | None = None
        if isinstance(own, ContinuousAcer):
            if self.network.lstm_size:
                raise ValueError("network: the advantages of continuous actions have no lstm")
            self.advantages = critic_of(self.network, own.action_shape)
