"""The networks of intrinsic rewards, and the statistics that they need."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from relaax.algorithm_base import FloatVector
from relaax.learning.distributions import Distribution
from relaax.learning.intrinsic.settings import IcmSection, RndSection, fingerprint
from relaax.learning.networks import Head, initial_parameters
from relaax.observations import UNNAMED, Shapes

#: The network of the intrinsic rewards' own value, and its head.
VALUE = "value"

#: The names of the statistics: of returns, and of each observation behind the second one.
RETURNS, STATES = "intrinsic returns", "intrinsic/"


class IntrinsicNetworks:
    """The parameters and the statistics of a part, known without TensorFlow.

    ``shapes`` are those of observations, stacked.
    """

    def __init__(
        self, section: IcmSection | RndSection, shapes: Shapes, actions: Distribution
    ) -> None:
        self.section, self.shapes, self.actions = section, shapes, actions
        #: By name, in the order of the parameters.
        self.learnt = section.networks(shapes, actions)
        if section.gamma is not None:
            self.learnt[VALUE] = section.encoder(shapes, section.hidden_layers, Head(VALUE, 1))

    @property
    def sizes(self) -> list[int]:
        """How many parameters each network has."""
        return [network.manifest.size for network in self.learnt.values()]

    def initial(self, seed: int | None) -> FloatVector:
        """Return the first parameters of all, one behind another, each drawn apart.

        No stream is the one of a seed alone, which the network that is predicted is drawn with.
        """
        return np.concatenate(
            [
                initial_parameters(
                    each.manifest, "orthogonal", None if seed is None else [seed, 4, number]
                )
                for number, each in enumerate(self.learnt.values(), 1)
            ]
        )

    @property
    def statistics(self) -> Mapping[str, int]:
        """How many numbers there are running means and deviations of, by name."""
        shapes = self.shapes if isinstance(self.shapes, Mapping) else {UNNAMED: self.shapes}
        widths = {f"{STATES}{name}": prod(shape) for name, shape in shapes.items()}
        return widths if self.section.gamma is None else {**widths, RETURNS: 1}

    def fingerprint(self) -> Mapping[str, Any]:
        """Return the properties that a checkpoint must agree on, as JSON values."""
        return {"intrinsic": fingerprint(self.section)}
