"""The addresses of other processes in options, and others in their place."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from relaax.address import Address, Addresses
from relaax.configuration.option_base import Options
from relaax.names.paths import NAMES, NamedPlace

#: Options that are no addresses of other processes of a training.
_OWN = ("bind", "http_bind", "proxy")

_Options = TypeVar("_Options", bound=Options)


def known_addresses(options: Options) -> Iterator[Address]:
    """Yield the addresses of other processes, and those of parameter servers that have names."""
    for _, value in _places(options):
        for each in value if isinstance(value, tuple) else (value,):
            yield each.address if isinstance(each, NamedPlace) else each


def with_addresses(options: _Options, new: Mapping[Address, Address]) -> _Options:
    """Return options with the ``new`` addresses in the place of those that they have."""
    changed = {name: now for name, value in _places(options) if (now := _now(value, new)) != value}
    return options.model_copy(update=changed) if changed else options


def _places(options: Options) -> Iterator[tuple[str, Any]]:
    """Yield the options, by the names of their fields, whose values are addresses or names."""
    for name in type(options).model_fields:
        value = getattr(options, name)
        several = value if isinstance(value, tuple) else (value,)
        if name not in _OWN and several and all(map(_is_place, several)):
            yield name, value


def _is_place(value: Any) -> bool:
    return isinstance(value, Address) or (isinstance(value, NamedPlace) and value.scheme == NAMES)


def _now(value: Any, new: Mapping[Address, Address]) -> Any:
    if isinstance(value, tuple):
        now = tuple(_now(each, new) for each in value)
        return Addresses(now) if isinstance(value, Addresses) else now
    if isinstance(value, NamedPlace):
        return replace(value, address=new.get(value.address, value.address))
    return new.get(value, value)
