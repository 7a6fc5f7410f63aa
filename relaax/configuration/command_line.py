"""Builds the command-line parsers from the declared options."""

import argparse
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from relaax import __version__
from relaax.configuration.commands import Command
from relaax.configuration.merging import ALGORITHM
from relaax.configuration.option_base import IN_ACCESS
from relaax.configuration.option_kinds import Flag, marks_of

_PRECEDENCE = """
A flag beats the YAML file, and the YAML file beats the default. In the YAML file, write the same
options as keys of the section {program}, with their dashes:

  {program}:
    {key}
    --log-level: INFO
"""


def build_parser(command: Command[Any]) -> argparse.ArgumentParser:
    """Return the parser of a command: ``--config``, ``--version`` and a flag for each option.

    Flags that are not given are absent from the result, so that the YAML file can supply them.
    """
    program, options = command.name, command.options
    parser = argparse.ArgumentParser(
        prog=program,
        description=command.description,
        epilog=command.examples + _PRECEDENCE.format(program=program, key=command.key),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument(
        "--config",
        type=Path,
        required=True,
        metavar="FILE",
        help="configuration YAML file, the same for all servers"
        + ("; as the first argument it needs no --config" if command.takes_file_first else ""),
    )
    parser.add_argument(
        "--set",
        action="append",
        metavar=f"{ALGORITHM}.KEY=VALUE",
        help=f"set a key of the section {ALGORITHM}, with a value as in YAML; it beats the file, "
        f"and {ALGORITHM}.KEY.INNER leads into a section of keys; it may be given several times, "
        "and alike to all servers",
    )
    parser.add_argument(
        "--list-options",
        action="store_true",
        help="print all options, and the keys of the algorithm that are given, each with its value "
        "and the source of it, and exit",
    )
    fields = options.model_fields
    access = parser.add_argument_group(
        "access", "also keys of the section access of the YAML file, which holds for all servers"
    )
    own = [name for name in options.__annotations__ if name in fields]
    for name in dict.fromkeys([*own, *fields]):  # its own before those that several commands have
        _add_flag(access if IN_ACCESS in marks_of(fields[name]) else parser, fields[name])
    return parser


def _add_flag(parser: argparse._ActionsContainer, field: FieldInfo) -> None:
    flag = next(mark for mark in marks_of(field) if isinstance(mark, Flag))
    metavar = flag.metavar
    described = f"{field.description}{_default(field.default)}"
    settings: dict[str, Any] = {"help": described.replace("%", "%%"), "dest": field.alias}
    if metavar == ():
        # The flag --no-... overrides a true in the YAML file.
        settings["action"] = argparse.BooleanOptionalAction
    else:
        settings["metavar"] = metavar
        if isinstance(metavar, tuple):
            settings["nargs"] = len(metavar)
        elif flag.takes_several:
            settings["nargs"] = "+"
        elif flag.alone is not None:
            settings |= {"nargs": "?", "const": flag.alone}
    parser.add_argument(str(field.alias), **settings)


def _default(value: Any) -> str:
    return "" if value in (None, False) else f" (default: {value})"
