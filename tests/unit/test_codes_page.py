"""docs/troubleshooting.md names every code that a user can meet, and no other."""

import inspect
import re

import pytest

from relaax import errors
from relaax.client import Failure
from relaax.protocol.binary import ErrorCode
from tests.codes import ROOT, exit_statuses, grpc_codes, http_statuses

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text()

#: What the libraries answer by themselves, without a word in our code.
OF_GRPC = {"UNIMPLEMENTED", "UNKNOWN"}
OF_HTTP = {"500"}

IN_THE_CODE = {
    "Exit statuses": exit_statuses(),
    "Codes of RLX": {f"{code.value} {code.name}" for code in ErrorCode},
    "Status codes of gRPC": grpc_codes() | OF_GRPC,
    "Statuses of the port for operators": http_statuses() | OF_HTTP,
    "Error classes": {
        name
        for name, each in vars(errors).items()
        if inspect.isclass(each) and each is not errors.RelaaxError
    }
    | {Failure.__name__},
}


def table(title: str) -> list[list[str]]:
    """Return the rows of the section's table: code, cause and cure."""
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows[2:]]


@pytest.mark.parametrize("title", IN_THE_CODE)
def test_a_table_has_the_codes_of_the_code_and_no_others(title: str) -> None:
    codes = [row[0] for row in table(title)]
    assert sorted(codes) == sorted(IN_THE_CODE[title])


@pytest.mark.parametrize("title", IN_THE_CODE)
def test_each_code_has_a_cause_and_a_cure(title: str) -> None:
    for row in table(title):
        assert len(row) == 3, row
        assert all(cell.endswith(".") for cell in row[1:]), row


def test_the_protocols_document_has_the_same_codes_and_what_a_client_does() -> None:
    (section,) = re.findall(r"^### Errors\n(.*?)(?=^###)", PROTOCOL, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (\d+) \| [^|]* \| (yes|no)\b.*\|$", section, re.MULTILINE)
    assert {int(code): again == "no" for code, again in rows} == {
        code.value: Failure("", code).is_final for code in ErrorCode
    }
