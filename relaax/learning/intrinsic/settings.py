"""The keys of the section ``intrinsic``."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base import Section
from relaax.algorithm_base.config_base import LISTED, require_effect
from relaax.learning.distributions import DiagonalGaussian, Distribution
from relaax.learning.networks import Dense, Head, Network, default_network
from relaax.learning.previous import previous_size
from relaax.observations import Shapes

#: The heads of the networks, and the names of the latter.
FEATURES, INVERSE, FORWARD, PREDICTOR, TARGET = (
    "features", "inverse", "forward", "predictor", "target"
)  # fmt: skip


class _Section(Section):
    """The keys that each part has."""

    #: Weight of intrinsic rewards beside those of the environment.
    weight: PositiveFloat
    #: Discount factor of intrinsic rewards, which then have a value of their own, go on across the
    #: ends of episodes, and are divided by the deviation of their returns; None: they are added to
    #: the environment's as they are.
    gamma: float | None = Field(None, gt=0, lt=1)
    #: Lambda of the returns that this value learns.
    trace_decay: float = Field(0.95, ge=0, le=1)
    #: Units of the dense layers of each network.
    hidden_layers: Annotated[tuple[PositiveInt, ...], LISTED] = (64,)
    #: How many features of a state are predicted.
    features: PositiveInt = 64
    #: Steps that an update learns from at most: drawn from the algorithm's batch, or, where its
    #: learner sets values itself, all of the batch, in pieces.
    batch_size: PositiveInt = 256
    #: Adam's; it is annealed where gradients move the algorithm's parameters and its own is.
    learning_rate: PositiveFloat = 1e-4

    @abstractmethod
    def networks(self, shapes: Shapes, actions: Distribution) -> dict[str, Network]:
        """Return the networks that learn, by name, for observations of these ``shapes``."""

    def encoder(self, shapes: Shapes, units: tuple[int, ...], head: Head) -> Network:
        """Return a network of observations with dense layers of ``units``."""
        return default_network(shapes, tuple(Dense(each) for each in units), (head,))

    @model_validator(mode="after")
    def _uses_its_lambda(self) -> "_Section":
        if self.gamma is None:
            require_effect(self, ("trace_decay",), "gamma")
        return self


class IcmSection(_Section):
    """Curiosity by self-supervised prediction: Pathak et al. 2017."""

    name: Literal["icm"]
    #: The paper's eta.
    weight: PositiveFloat = 0.01
    #: Weight of the forward model's loss; that of the inverse model has the rest.
    beta: float = Field(0.2, ge=0, le=1)

    def networks(self, shapes: Shapes, actions: Distribution) -> dict[str, Network]:
        """Return features phi(s), the inverse model g, and the forward model f: figure 2."""
        layers = tuple(Dense(units) for units in self.hidden_layers)
        inverse, forward = Head(INVERSE, outputs_of_inverse(actions)), Head(FORWARD, self.features)
        width = self.features + previous_size(actions)
        return {
            FEATURES: self.encoder(shapes, self.hidden_layers, Head(FEATURES, self.features)),
            INVERSE: Network.of((2 * self.features,), layers, (inverse,)),
            FORWARD: Network.of((width,), layers, (forward,)),
        }


class RndSection(_Section):
    """Random network distillation: Burda et al. 2018."""

    name: Literal["rnd"]
    weight: PositiveFloat = 0.5
    gamma: float | None = Field(0.99, gt=0, lt=1)
    #: Of the fixed network, which all processes and all parts of a training make alike.
    target_seed: int = Field(0, ge=0)

    def networks(self, shapes: Shapes, actions: Distribution) -> dict[str, Network]:
        """Return the predictor, which has a layer more than the target, as in the paper."""
        units = (*self.hidden_layers, *self.hidden_layers[-1:])
        return {PREDICTOR: self.encoder(shapes, units, Head(PREDICTOR, self.features))}

    def target(self, shapes: Shapes) -> Network:
        """Return the network that is predicted."""
        return self.encoder(shapes, self.hidden_layers, Head(TARGET, self.features))


#: A field for the section: ``name`` says which part it describes.
IntrinsicSection: TypeAlias = Annotated[IcmSection | RndSection, Field(discriminator="name")]


def outputs_of_inverse(actions: Distribution) -> int:
    """Return how many numbers say which action it was: logits, or a continuous action itself."""
    return previous_size(actions) if is_continuous(actions) else actions.outputs


def is_continuous(actions: Distribution) -> bool:
    """Return whether actions are continuous."""
    return isinstance(actions, DiagonalGaussian)


def fingerprint(section: IcmSection | RndSection) -> Mapping[str, Any]:
    """Return the properties that a checkpoint must agree on, as JSON values."""
    keys = ("name", "features", "hidden_layers", "target_seed")
    found = {key: getattr(section, key) for key in keys if hasattr(section, key)}
    return {**found, "hidden_layers": list(section.hidden_layers)}
