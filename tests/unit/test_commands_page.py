"""docs/commands.md names every option of every command."""

import re
from pathlib import Path

import pytest

from relaax.configuration.command_line import build_parser
from relaax.configuration.commands import COMMANDS
from relaax.configuration.option_base import AccessOptions

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
#: Options of all servers, which have a table of their own.
OF_ACCESS = {str(field.alias) for field in AccessOptions.model_fields.values()}
#: Options of all commands, which have another one.
OF_ALL = {"--set", "--list-options"}


def _on_page(command: str) -> set[str]:
    """Return the options in the first column of the command's table."""
    (table,) = re.findall(rf"^\| `{command}`.*?(?=\n\n)", PAGE, re.MULTILINE | re.DOTALL)
    firsts = [row.split("|")[1] for row in table.splitlines()]
    return set(re.findall(r"--[a-z][a-z0-9-]+", " ".join(firsts)))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_table_of_a_command_has_its_options_and_no_others(command) -> None:
    actions = build_parser(command)._actions  # noqa: SLF001 - argparse lists them nowhere else
    wanted = {action.option_strings[-1] for action in actions if action.option_strings}
    wanted = {re.sub("^--no-", "--", name) for name in wanted} - {"--help", "--version"}
    wanted -= OF_ACCESS | OF_ALL
    missing = wanted - _on_page(command.name)
    assert _on_page(command.name) - wanted == set()
    assert missing == set()


def test_the_tables_of_all_commands_have_their_options() -> None:
    assert _on_page("access") == OF_ACCESS
    assert _on_page("every command with --config") - {"--config"} == OF_ALL
