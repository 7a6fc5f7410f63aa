"""The configuration of QMIX, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.algorithm_base import FloatVector
from relaax.learning.distributions import ValuesOfChoices
from relaax.learning.networks import (
    POLICY,
    Dense,
    Encoder,
    Head,
    Network,
    SharedDense,
    initial_parameters,
)
from relaax.learning.off_policy import OffPolicyConfig
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.observations import UNNAMED
from relaax.spaces import Space

from .settings import Settings

#: The name of the mixer's parameters, among what is learnt.
MIXER = "mixer"

#: The heads of the mixer: the weights and biases of the mixing network's two layers.
WEIGHTS, BIAS, LAST_WEIGHTS, LAST_BIAS = "weights", "bias", "last_weights", "last_bias"


class Config(OffPolicyConfig):
    """The typed settings, checked once, and the networks that they describe."""

    algorithm = "qmix"

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings: Settings = Settings.model_validate(dict(config))
        self.actions: ValuesOfChoices = ValuesOfChoices(*self.settings.choices)
        self.network = agents_network(self.settings)
        #: None: values are summed up.
        self.mixer = mixer_network(self.settings) if self.settings.mixer == "qmix" else None

    @property
    def learning_rates(self) -> dict[str, float]:
        """The learning rates of the agents' network and of the mixer."""
        return dict.fromkeys(self._learnt, self.settings.learning_rate)

    @property
    def networks(self) -> tuple[Network, ...]:
        """The agents' network and the mixer."""
        return tuple(self._learnt.values())

    def initial(self, seed: int | None) -> dict[str, FloatVector]:
        """Return the parameters of all networks as they are at first."""
        return {
            name: initial_parameters(
                network.manifest, "uniform", None if seed is None else seed + number
            )
            for number, (name, network) in enumerate(self._learnt.items())
        }

    def action_space(self) -> Space:
        """Return the space of actions: a number for each agent."""
        return {"type": "MultiDiscrete", "nvec": list(self.settings.action_size)}

    @property
    def _learnt(self) -> dict[str, Network]:
        mixer = {} if self.mixer is None else {MIXER: self.mixer}
        return {POLICY_VARIABLE: self.network, **mixer}


def agents_network(settings: Settings) -> Network:
    """Return the network of all agents: what each observes passes the same layers by itself."""
    agents, actions = settings.choices
    units = [*settings.hidden_layers, actions]
    own = [settings.agent_index, *[False] * (len(units) - 1)]
    *layers, last = (
        SharedDense(
            size,
            agents,
            "linear" if number == len(units) - 1 else "relu",
            "own" if has_own else "shared",
        )
        for number, (size, has_own) in enumerate(zip(units, own, strict=True))
    )
    name, shape = settings.observed
    sees = None if name == UNNAMED else (name,)
    head = Head(POLICY, agents * actions, layers=(last,), sees=sees, is_linear=False)
    if not isinstance(settings.inputs, Mapping):
        return Network.of(shape, layers, (head,))
    encoders = {each: Encoder(size) for each, size in settings.inputs.items()}
    return Network(encoders, tuple(layers), (head,))


def mixer_network(settings: Settings) -> Network:
    """Return the hypernetworks, which make the mixing network's weights of the state.

    Section 4 of the paper: each is a linear layer, but for the last bias, which has a hidden one.
    """
    agents, units = len(settings.action_size), settings.mixing_units
    _, shape = settings.observed
    if isinstance(settings.inputs, Mapping) and settings.mixer_state is not None:
        shape = settings.inputs[settings.mixer_state]
    heads = (
        Head(WEIGHTS, agents * units),
        Head(BIAS, units),
        Head(LAST_WEIGHTS, units),
        Head(LAST_BIAS, 1, layers=(Dense(units),)),
    )
    return Network.of(shape, (), heads)
