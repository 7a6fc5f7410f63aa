"""A network: encoders, a trunk and heads, and the shapes of their parameters."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from typing import TypeAlias

from relaax.learning.networks.layers import LSTM, Convolution, Layer, TransposedConvolution, weights
from relaax.learning.networks.manifest import ParameterManifest, TensorSpec
from relaax.observations import UNNAMED, Shape

#: The head that actions are chosen from.
POLICY = "policy"

#: Inputs of a network beside its observations: the action before, and the reward of it.
PREVIOUS_ACTION, PREVIOUS_REWARD = "previous/action", "previous/reward"

#: Small logits make a policy that begins near the uniform one: Andrychowicz et al. 2021
#: (https://arxiv.org/abs/2006.05990), section 3.2.
_POLICY_GAIN = 0.01

#: Layers, and what the names of their parameters begin with.
NamedLayers: TypeAlias = tuple[tuple[str, Layer], ...]


@dataclass(frozen=True)
class Head:
    """Named outputs of a network: a linear layer on top of it, and perhaps a free part.

    Between these may be ``layers`` of its own, which no other head shares. ``units`` depend on the
    state. ``free_units`` follow them and do not: they are parameters themselves, ``free_start`` at
    first. A Gaussian whose sigma is free of the state has both. ``sees`` names the observations
    that it may depend on; None: all. A head that is not ``is_linear`` puts out what the last of its
    layers does, such as the values of an image: ``units`` say how many numbers these are.

    With ``frames`` it lies on the encoders alone: it sees what they put out for so many
    observations, one after another, without a layer that other heads share. Such a head is
    evaluated by ``layers_tf.frames_outputs``, and does not change which observations the shared
    layers see.
    """

    name: str
    units: int
    free_units: int = 0
    free_start: float = 0.0
    layers: tuple[Layer, ...] = ()
    sees: tuple[str, ...] | None = None
    is_linear: bool = True
    frames: int | None = None

    @cached_property
    def named_layers(self) -> NamedLayers:
        """Its own layers, with names that begin with its own."""
        return _named(self.layers, f"{self.name}/")

    @property
    def outputs(self) -> int:
        """How many numbers it puts out."""
        return self.units + self.free_units

    def parameters(self, features: int) -> list[TensorSpec]:
        """Return the parameters on top of so many ``features``."""
        specs: list[TensorSpec] = []
        size = prod(_walk(self.named_layers, (features,), specs))
        if self.units and self.is_linear:
            gain = _POLICY_GAIN if self.name == POLICY else 1.0
            specs += weights(self.name, (size, self.units), gain)
        elif self.units and size != self.units:
            raise ValueError(f"{self.name}: its layers put out {size} numbers, not {self.units}")
        if self.free_units:
            free = (self.free_units,)
            specs.append(TensorSpec(f"{self.name}/free", free, 1, start=self.free_start))
        return specs


@dataclass(frozen=True)
class Encoder:
    """The layers of one observation, and its shape after preprocessing."""

    shape: Shape
    layers: tuple[Layer, ...] = ()


@dataclass(frozen=True)
class Network:
    """An encoder for each observation, layers on top of those that all heads see, and heads.

    What the encoders put out is flattened and joined, in the order of the observations' names.
    Observations that only some heads see are joined behind ``layers``, for these heads. At most one
    layer is an ``LSTM``: the last of ``layers``. An observation that no head sees has no
    parameters. Two equal networks have interchangeable parameters. ValueError for an observation
    and a head of one name, if that has layers of its own, and for ``layers`` that see nothing.
    """

    #: By the observations' names; one under ``UNNAMED`` if it has no name. Beside them may be
    #: ``PREVIOUS_ACTION`` and ``PREVIOUS_REWARD``.
    encoders: Mapping[str, Encoder]
    layers: tuple[Layer, ...]
    heads: tuple[Head, ...]

    def __post_init__(self) -> None:
        for head in self.heads:
            if head.layers and head.name in self.encoders:
                raise ValueError(
                    f"an observation cannot be named {head.name}: so is a head with layers of its "
                    "own, whose parameters would have the same names"
                )
        if self.layers and not self.shared:
            raise ValueError("layers: no observation is seen by all heads, and so none by layers")

    @classmethod
    def of(
        cls, observation_shape: Shape, layers: Sequence[Layer], heads: tuple[Head, ...]
    ) -> "Network":
        """Return the network of one observation without a name: its layers one after another."""
        recurrent = tuple(layer for layer in layers[-1:] if isinstance(layer, LSTM))
        below = tuple(layers[: len(layers) - len(recurrent)])
        return cls({UNNAMED: Encoder(observation_shape, below)}, recurrent, heads)

    @property
    def is_named(self) -> bool:
        """Whether observations are arrays by name."""
        return self.encoders.keys() != {UNNAMED}

    @property
    def observation_shape(self) -> Shape | dict[str, Shape]:
        """Return the shape of one observation after preprocessing, by name if it has names."""
        if not self.is_named:
            return self.encoders[UNNAMED].shape
        return {name: encoder.shape for name, encoder in self.encoders.items()}

    @property
    def lstm_size(self) -> int:
        """Cells of the recurrent layer; 0 without one."""
        return sum(layer.units for layer in self.layers if isinstance(layer, LSTM))

    @cached_property
    def has_convolutions(self) -> bool:
        """Whether a layer is a convolution, or a transposed one."""
        lists = [e.layers for e in self.encoders.values()] + [h.layers for h in self.heads]
        layers = [layer for some in (*lists, self.layers) for layer in some]
        return any(isinstance(layer, Convolution | TransposedConvolution) for layer in layers)

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """The observations that all heads, and so ``layers``, see, in the order of their names."""
        names, heads = sorted(self.encoders), self.joining
        return tuple(name for name in names if all(h.sees is None or name in h.sees for h in heads))

    @cached_property
    def joining(self) -> tuple[Head, ...]:
        """The heads on top of ``layers``: all but those that see frames."""
        return tuple(head for head in self.heads if head.frames is None)

    def beside(self, head: Head) -> tuple[str, ...]:
        """Return the observations that are joined behind ``layers`` for ``head``, in order.

        Those of each frame, for a head that sees frames.
        """
        names = self.encoders if head.sees is None else head.sees
        return tuple(sorted(set(names).difference(() if head.frames else self.shared)))

    def seen_by(self, heads: Iterable[Head]) -> tuple[str, ...]:
        """Return the observations that the outputs of some ``heads`` depend on, in order.

        Of no head: those that the shared layers see.
        """
        heads = [*heads]
        shared = () if heads and all(head.frames for head in heads) else self.shared
        return tuple(sorted({*shared, *(name for h in heads for name in self.beside(h))}))

    @cached_property
    def encoder_layers(self) -> dict[str, NamedLayers]:
        """The layers of each encoder, by the names of observations that are seen, in order."""
        return {
            name: _named(self.encoders[name].layers, f"{name}/" if name else "")
            for name in self.seen_by(self.heads)
        }

    @cached_property
    def trunk(self) -> NamedLayers:
        """``layers``, with names that go on after those of an encoder without a name."""
        before = self.encoders[UNNAMED].layers if UNNAMED in self.encoders else ()
        return _named((*before, *self.layers), "")[len(before) :]

    def joined_size(self, names: Iterable[str]) -> int:
        """Return how many numbers the encoders of some observations put out together."""
        layers, encoders = self.encoder_layers, self.encoders
        return sum(prod(_walk(layers[name], encoders[name].shape, [])) for name in names)

    def feature_size(self, head: Head) -> int:
        """Return how many numbers a head, or the first of its layers, sees."""
        if head.frames is not None:
            return head.frames * self.joined_size(self.beside(head))
        features = prod(_walk(self.trunk, (self.joined_size(self.shared),), []))
        return features + self.joined_size(self.beside(head))

    @property
    def sights(self) -> dict[str, list[str]]:
        """The observations that heads see, by their names; without heads that see all."""
        return {head.name: list(head.sees) for head in self.heads if head.sees is not None}

    def head(self, name: str) -> Head:
        """Return the head of this name."""
        return next(head for head in self.heads if head.name == name)

    @cached_property
    def manifest(self) -> ParameterManifest:
        """Names and shapes of all parameters, in the order of the flat vector."""
        specs: list[TensorSpec] = []
        for name, layers in self.encoder_layers.items():
            _walk(layers, self.encoders[name].shape, specs)
        _walk(self.trunk, (self.joined_size(self.shared),), specs)
        for head in self.heads:
            specs += head.parameters(self.feature_size(head))
        return ParameterManifest(tuple(specs))


def written(layer: Layer) -> str:
    """Return a layer in words, with all of its values: ``dense(units=64, activation=relu)``."""
    values = ", ".join(f"{field.name}={getattr(layer, field.name)}" for field in fields(layer))
    return f"{layer.kind}({values})"


def _named(layers: Sequence[Layer], prefix: str) -> NamedLayers:
    """Return layers with their names: a number for each kind, but for the one recurrent layer."""
    counts: Counter[str] = Counter()
    named = []
    for layer in layers:
        number = "" if isinstance(layer, LSTM) else counts[layer.stem]
        named.append((f"{prefix}{layer.stem}{number}", layer))
        counts[layer.stem] += 1
    return tuple(named)


def _walk(layers: NamedLayers, shape: Shape, specs: list[TensorSpec]) -> Shape:
    """Add the parameters of ``layers`` to ``specs``; return the shape of what they put out."""
    for name, layer in layers:
        specs += layer.parameters(name, shape)
        shape = layer.output_shape(shape)
    return shape
