"""What is learnt, by name, and the flat vector that it travels as."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.errors import ConfigurationError

Array = npt.NDArray[Any]

#: Parameters by name: those of one array have its name, those of a module ``name/0``, ``name/1``.
ParameterArrays: TypeAlias = Mapping[str, npt.NDArray[np.float32]]


@runtime_checkable
class HasWeights(Protocol):
    """A module that hands its parameters out and takes others, like a model of Keras."""

    def get_weights(self) -> Sequence[Array]:
        """Return the parameters, always as many and in one order."""

    def set_weights(self, weights: Sequence[Array]) -> Any:
        """Use these parameters from now on."""


#: One array of float32, which is written into, or what has weights.
Module: TypeAlias = npt.NDArray[np.float32] | HasWeights


class ModuleDict:
    """Modules by name; the learner's and the actor's have the same names and shapes.

    The order of names in ``modules`` does not matter.
    """

    def __init__(self, modules: Mapping[str, Module]) -> None:
        if not modules:
            raise ConfigurationError("module_dict() names no module: nothing could be published")
        for name, module in modules.items():
            _require_module(name, module)
        self._modules = dict(sorted(modules.items()))

    def parameters(self) -> ParameterArrays:
        """Return the parameters by name; arrays are the modules' own, and not to be changed."""
        found: dict[str, npt.NDArray[np.float32]] = {}
        for name, module in self._modules.items():
            if isinstance(module, np.ndarray):
                found[name] = module
            else:
                weights = enumerate(module.get_weights())
                found |= {f"{name}/{n}": np.asarray(part, np.float32) for n, part in weights}
        return found

    def vector(self) -> FloatVector:
        """Return all parameters, one behind the other: float32 [size], the caller's own."""
        return np.concatenate([part.ravel() for part in self.parameters().values()])

    def split(self, vector: FloatVector) -> ParameterArrays:
        """Return what a ``vector`` [size] of another process means, by name: read-only views."""
        known = self.parameters()
        sizes = [part.size for part in known.values()]
        if vector.size != sum(sizes):
            raise ConfigurationError(
                f"the parameters that were published have {vector.size} numbers, and the modules "
                f"here ({', '.join(known)}) have {sum(sizes)}: module_dict() must name the same "
                "modules in the learner and in the actor"
            )
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        return {
            name: part.reshape(known[name].shape) for name, part in zip(known, parts, strict=True)
        }

    def load(self, parameters: ParameterArrays) -> None:
        """Use ``parameters``, by name, from now on; they are copied."""
        for name, module in self._modules.items():
            if isinstance(module, np.ndarray):
                module[...] = parameters[name]
            else:
                count = len(module.get_weights())
                module.set_weights([parameters[f"{name}/{n}"] for n in range(count)])


def _require_module(name: str, module: object) -> None:
    if isinstance(module, np.ndarray):
        if module.dtype != np.float32 or not module.flags.writeable:
            raise ConfigurationError(
                f"module_dict(): {name} must be a writeable array of float32, is one of "
                f"{module.dtype}"
            )
    elif not isinstance(module, HasWeights):
        raise ConfigurationError(
            f"module_dict(): {name} must be an array of float32, or have get_weights() and "
            f"set_weights(); it is a {type(module).__name__}"
        )
