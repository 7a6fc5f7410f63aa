"""One merge of flags, sections of the YAML file and defaults, which keeps each value's source."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from relaax.configuration import option_base
from relaax.configuration.mistakes import as_written, explain
from relaax.configuration.yaml_reader import read_value
from relaax.errors import ConfigurationError, did_you_mean_one_of

Options = TypeVar("Options", bound=option_base.Options)

#: Sources that are no section of a file.
COMMAND_LINE, DEFAULT = "command line", "default"

#: The section of keys that ``--set`` can give.
ALGORITHM = "algorithm"

#: One of these options replaces the other one of a weaker source.
ALTERNATIVES = ("--checkpoint-dir", "--checkpoint-aws-s3")


@dataclass(frozen=True)
class Layer:
    """The values of options that one source has, by key."""

    values: Mapping[str, Any]
    #: The section of a file, as messages name it; empty for the command line.
    place: str = ""


def merge(options: type[Options], layers: Sequence[Layer]) -> tuple[Options, dict[str, str]]:
    """Return the options, and by key the source of each; an earlier layer beats a later one.

    ConfigurationError names the layer of a wrong value, also where another layer beats it. YAML
    values have types, which must fit exactly; on the command line all is text.
    """
    for layer in reversed(layers):
        _valid(options, layer.values, layer.place and f"{layer.place}: ", bool(layer.place))
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        beaten = {*values, *(ALTERNATIVES if values.keys() & set(ALTERNATIVES) else ())}
        own = {key: value for key, value in layer.values.items() if key not in beaten}
        values |= own
        sources |= dict.fromkeys(own, layer.place or COMMAND_LINE)
    try:
        merged = options.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(_with_sources("; ".join(explain(error)), sources)) from error
    keys = (str(field.alias) for field in options.model_fields.values())
    return merged, {key: sources.get(key, DEFAULT) for key in keys}


def with_settings(
    section: Mapping[str, Any], settings: Sequence[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the algorithm's section with ``--set algorithm.KEY=VALUE``, and the keys given so.

    A dot leads into a section of keys, and a value is written as in YAML. ConfigurationError for a
    setting of another form.
    """
    merged, keys = dict(section), set()
    for setting in settings:
        path, text = _split(setting)
        keys.add(path)
        *around, last = path.split(".")
        inner = merged
        for key in around:
            found = inner.get(key, {})
            if not isinstance(found, Mapping):
                raise ConfigurationError(
                    f"--set {setting}: {key} is no section of keys, but {as_written(found)}"
                )
            inner[key] = inner = dict(found)
        inner[last] = read_value(text, f"--set {setting}")
    return merged, tuple(sorted(keys))


def _split(setting: str) -> tuple[str, str]:
    """Return the key and the value of ``algorithm.KEY=VALUE``, both as they are written."""
    name, separator, text = setting.partition("=")
    section, _, path = name.partition(".")
    if section != ALGORITHM or not separator or not all(path.split(".")):
        hint = "" if section == ALGORITHM else did_you_mean_one_of(section, [ALGORITHM])
        raise ConfigurationError(f"--set {setting}: must be {ALGORITHM}.KEY=VALUE{hint}")
    return path, text


def listed(options: BaseModel, sources: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each option: its key, its value and the source of it."""
    for name, field in type(options).model_fields.items():
        yield f"{field.alias} {_shown(getattr(options, name))}  ({sources[str(field.alias)]})"


def listed_settings(
    section: Mapping[str, Any], set_: Collection[str], place: str, around: str = ""
) -> Iterator[str]:
    """Yield the same for each key of the algorithm that is written in the file or by ``--set``."""
    for key, value in section.items():
        path = f"{around}{key}"
        if isinstance(value, Mapping):
            yield from listed_settings(value, set_, place, f"{path}.")
        else:
            is_set = any(path == each or path.startswith(f"{each}.") for each in set_)
            yield f"{ALGORITHM}.{path} {as_written(value)}  ({COMMAND_LINE if is_set else place})"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "-" if value is None else as_written(value) if isinstance(value, bool) else str(value)


def _valid(options: type[BaseModel], values: Mapping[str, Any], where: str, strict: bool) -> None:
    try:
        options.model_validate(dict(values), strict=strict)
    except ValidationError as error:
        raise ConfigurationError(where + "; ".join(explain(error))) from error


def _with_sources(message: str, sources: Mapping[str, str]) -> str:
    """Return a message with the sources of the options that it names."""
    named = [
        f"{key}: {source}"
        for key, source in sources.items()
        if re.search(rf"{key}(?![\w-])", message)
    ]
    return f"{message} ({'; '.join(named)})" if named else message
