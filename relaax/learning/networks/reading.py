"""Networks as configurations describe them: the key ``network``, or a file that it names.

docs/networks.md has the form. A mistake is a ValueError of one line: the file, the layer by its
position, counted from 1, and its kind, and what is wrong.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from relaax.configuration.yaml_reader import load_yaml, mistake_of
from relaax.errors import did_you_mean_one_of
from relaax.learning.networks.description import (
    PREVIOUS_ACTION,
    PREVIOUS_REWARD,
    Encoder,
    Head,
    Network,
)
from relaax.learning.networks.encoders import default_encoder
from relaax.learning.networks.layers import KINDS, LSTM, Convolution, Layer, TransposedConvolution
from relaax.observations import UNNAMED, Shape, Shapes, flattened

_SECTIONS = ("encoders", "layers", "heads", "previous")

#: The keys of a head.
_OF_HEAD = ("sees", "layers")

_ADAPTERS: dict[str, TypeAdapter[Layer]] = {kind: TypeAdapter(KINDS[kind]) for kind in KINDS}

#: Of layers that may be written as ``dense: 64``.
_SHORT_KEY = "units"


def read_network(
    section: Any, observation_shape: Shapes, heads: tuple[Head, ...], previous: int = 0
) -> Network:
    """Return the network that ``section`` describes for observations of a shape, or several.

    ``section`` is a mapping with ``encoders``, ``layers`` and ``heads``, a list of layers, or the
    path of a JSON or YAML file that holds one of these, relative to the working directory (the
    servers have looked in the folder of their own YAML file before). An observation that it does
    not name has its default encoder; a head sees all observations, and keeps its layers, if any.
    ``previous``: how many numbers an action is where the network sees the previous one; 0 where an
    algorithm has no such inputs.
    """
    place = "network"
    if isinstance(section, str):
        place = f"network: {section}"
        section = _loaded(Path(os.path.expanduser(section)), place)
    if isinstance(section, list):
        section = {"layers": section}
    if not isinstance(section, dict):
        raise ValueError(
            f"{place}: must be a list of layers, or a section with {_listed(_SECTIONS)}, "
            f"is {section!r}"
        )
    for key in section:
        _require_known(key, _SECTIONS, place)
    of_heads = _sections_of_heads(section.get("heads"), heads, f"{place}: heads")
    layers, encoders = section.get("layers", []), section.get("encoders")
    before = _previous(section.get("previous"), previous, f"{place}: previous")
    if isinstance(observation_shape, Mapping):
        shapes = dict(observation_shape)
    else:
        shapes = {UNNAMED: observation_shape}
    is_named = UNNAMED not in shapes
    for name in shapes.keys() & before.keys():
        raise ValueError(f"{place}: previous: an observation has the name {name}")
    if not is_named:
        for name, of_head in of_heads.items():
            if "sees" in of_head:
                raise ValueError(f"{place}: heads: {name}: sees: the observation has no name")
    if is_named or before or len(shapes) > 1:
        shapes |= before
        heads = tuple(_seeing(head, before) for head in heads)
        heads = _with_sights(of_heads, heads, shapes, f"{place}: heads")
        encoders = {} if encoders is None else encoders
        network = _named_network(encoders, layers, shapes, heads, place)
        return _with_heads(of_heads, network, f"{place}: heads")
    if encoders is not None:
        raise ValueError(
            f"{place}: encoders: the observation has no name; write its layers under 'layers'"
        )
    alone = shapes[UNNAMED]
    read = _read_layers(layers, f"{place}: layers", alone, may_recur=True)
    network = Network.of(alone, read, heads)
    return _with_heads(of_heads, network, f"{place}: heads")


def _previous(names: Any, previous: int, place: str) -> dict[str, Shape]:
    """Return the shapes of the previous action and reward, as far as ``names`` has them."""
    shapes: dict[str, Shape] = {PREVIOUS_ACTION: (previous,), PREVIOUS_REWARD: (1,)}
    known = {name.removeprefix("previous/"): name for name in shapes}
    if names is None:
        return {}
    if not previous:
        raise ValueError(f"{place}: this algorithm has no previous action and reward")
    if not isinstance(names, list):
        raise ValueError(f"{place}: must be a list of {_listed(list(known))}, is {names!r}")
    for name in names:
        _require_known(name, known, place, "input")
    return {known[name]: shapes[known[name]] for name in names}


def _sections_of_heads(sections: Any, heads: tuple[Head, ...], place: str) -> dict[str, Any]:
    """Return the sections of heads by name; a list is short for ``layers``."""
    if sections is None:
        return {}
    if not isinstance(sections, dict):
        raise ValueError(f"{place}: must be lists of layers by name, is {sections!r}")
    read = {}
    for name, section in sections.items():
        _require_known(name, [head.name for head in heads], place, "head")
        read[name] = section if isinstance(section, dict) else {"layers": section}
        for key in read[name]:
            _require_known(key, _OF_HEAD, f"{place}: {name}")
    return read


def _seeing(head: Head, names: Iterable[str]) -> Head:
    """Return a head that sees these observations, too; one that sees all does so already."""
    return head if head.sees is None else replace(head, sees=tuple(sorted({*head.sees, *names})))


def _with_sights(
    sections: Mapping[str, Any], heads: tuple[Head, ...], shapes: Iterable[str], place: str
) -> tuple[Head, ...]:
    """Return heads that see the observations that are named for them: for all heads, or for none.

    It would be easy to read something else into a head that does not say what it sees.
    """
    if not any("sees" in section for section in sections.values()):
        return heads
    return tuple(
        replace(head, sees=_sight(sections.get(head.name, {}), shapes, f"{place}: {head.name}"))
        for head in heads
    )


def _sight(section: Mapping[str, Any], shapes: Iterable[str], place: str) -> tuple[str, ...]:
    names = section.get("sees")
    if names is None:
        raise ValueError(f"{place}: sees is missing: where one head has it, all have")
    if not isinstance(names, list) or not names:
        raise ValueError(f"{place}: sees: must be a list of observations, is {names!r}")
    for name in names:
        _require_known(name, shapes, f"{place}: sees", "observation")
    return tuple(sorted(set(names)))


def _with_heads(sections: Mapping[str, Any], network: Network, place: str) -> Network:
    """Return a network whose heads have the layers that are described for them by name."""
    heads = []
    for head in network.heads:
        layers, shape = sections.get(head.name, {}).get("layers"), (network.feature_size(head),)
        if layers is not None:
            read = _read_layers(layers, f"{place}: {head.name}", shape)
            head = replace(head, layers=read)  # noqa: PLW2901 - the same head, as described
        heads.append(head)
    try:
        return replace(network, heads=tuple(heads))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _named_network(
    encoders: Any, layers: Any, shapes: Mapping[str, Shape], heads: tuple[Head, ...], place: str
) -> Network:
    where = f"{place}: encoders"
    if not isinstance(encoders, dict):
        raise ValueError(f"{where}: must be lists of layers by name, is {encoders!r}")
    try:
        described = flattened(encoders)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    for name in described:
        _require_known(name, list(filter(None, shapes)), where, "observation")
    made, convolved = {}, 0
    for name, shape in shapes.items():
        if name == UNNAMED:
            convolved = _up_to_convolutions(layers)
            read = _read_layers(layers[:convolved] if convolved else [], f"{place}: layers", shape)
            made[name] = Encoder(shape, read)
        elif name in described:
            made[name] = Encoder(shape, _read_layers(described[name], f"{where}: {name}", shape))
        elif name in (PREVIOUS_ACTION, PREVIOUS_REWARD):
            made[name] = Encoder(shape)
        else:
            made[name] = default_encoder(f"{where}: {name}", shape)
    below = Network(made, (), heads)
    joined = (below.joined_size(below.shared),)
    above = layers[convolved:] if convolved else layers
    read = _read_layers(above, f"{place}: layers", joined, may_recur=True, first=convolved + 1)
    try:
        return Network(made, read, heads)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _up_to_convolutions(values: Any) -> int:
    """Return the number of layers up to the last convolution."""
    kinds = {Convolution.kind, TransposedConvolution.kind}
    layers = values if isinstance(values, list) else []
    numbered = enumerate(layers, start=1)
    return max((n for n, one in numbered if isinstance(one, dict) and kinds & set(one)), default=0)


def _read_layers(
    values: Any, place: str, shape: Shape, may_recur: bool = False, first: int = 1
) -> tuple[Layer, ...]:
    """Return the layers that ``values`` say; the input of the ``first`` has this ``shape``."""
    if values is None:
        values = []
    if not isinstance(values, list):
        raise ValueError(f"{place}: must be a list of layers, is {values!r}")
    layers: list[Layer] = []
    for number, value in enumerate(values, start=first):
        layer, where = _read_layer(value, f"{place}: layer {number}")
        if isinstance(layer, LSTM) and not (may_recur and number == first + len(values) - 1):
            raise ValueError(
                f"{where}: a recurrent layer can only be the last one under 'layers', "
                "after the encoders and all other layers"
            )
        try:
            shape = layer.output_shape(shape)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        layers.append(layer)
    return tuple(layers)


def _read_layer(value: Any, place: str) -> tuple[Layer, str]:
    """Return a layer, and its place with its kind."""
    if isinstance(value, str):
        value = {value: None}
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(
            f"{place}: must be one kind of layer with its values, such as "
            f"{{dense: {{units: 64}}}}, is {value!r}"
        )
    ((kind, keys),) = value.items()
    _require_known(kind, KINDS, place, "kind of layer")
    where = f"{place} ({kind})"
    known = [field.name for field in fields(KINDS[kind])]
    if _is_count(keys) and _SHORT_KEY in known:
        keys = {_SHORT_KEY: keys}
    if not isinstance(keys, dict | None):
        raise ValueError(f"{where}: must be a section with {_listed(known)}, is {keys!r}")
    for key in keys or {}:
        _require_known(key, known, where)
    try:
        return _ADAPTERS[kind].validate_python(keys or {}), where
    except ValidationError as error:
        mistakes = "; ".join(_mistake(mistake) for mistake in error.errors())
        raise ValueError(f"{where}: {mistakes}") from error


def _mistake(mistake: ErrorDetails) -> str:
    key, value = mistake["loc"][0], mistake["input"]
    if mistake["type"] == "missing":
        return f"{key} is missing"
    if key == "shape":
        return f"shape: must be a list of whole numbers above 0, is {value!r} there"
    if mistake["type"] != "literal_error":
        return f"{key}: must be a whole number above 0, is {value!r}"
    allowed = mistake["ctx"]["expected"].replace("'", "")
    hint = did_you_mean_one_of(value, allowed.replace(" or ", ", ").split(", "))
    return f"{key}: must be {allowed}, is {value!r}{hint}"


def _require_known(name: Any, known: Iterable[str], place: str, noun: str = "key") -> None:
    """Raise ValueError unless ``name`` is one of ``known``."""
    if name in known:
        return
    hint = did_you_mean_one_of(name, list(known)) or f"; there is {_listed(list(known))}"
    raise ValueError(f"{place}: {name}: no such {noun}{hint}")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _loaded(path: Path, place: str) -> Any:
    """Return the content of a JSON or YAML file; ValueError names the file and the line."""
    try:
        text = path.read_text("utf-8")
        return json.loads(text) if path.suffix == ".json" else load_yaml(text)
    except OSError as error:
        looked = (
            f"; looked beside the configuration and in {Path.cwd()}"
            if not path.is_absolute()
            else ""
        )
        raise ValueError(f"{place}: cannot be read: {error.strerror}{looked}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{place}, line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise ValueError(f"{place}: values lie in each other on too many levels") from error
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"{place}{line}: {mistake_of(error)}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{place}: is not UTF-8 text of JSON or YAML") from error
