"""docs/troubleshooting.md names every message of the code, and no other."""

import re

from tests.messages import ROOT, all_messages, all_texts

PAGE = ROOT / "docs" / "troubleshooting.md"
_ENTRY = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def entries() -> dict[str, str]:
    return dict(_ENTRY.findall(PAGE.read_text()))


def listed(entry: str) -> list[str]:
    return [line for block in _BLOCK.findall(entry) for line in block.splitlines()]


def test_each_message_of_the_code_is_on_the_page() -> None:
    on_page = {line for entry in entries().values() for line in listed(entry)}
    missing = [str(message) for message in all_messages() if message.text not in on_page]
    assert not missing, "\n".join(missing)


def test_each_message_on_the_page_is_in_the_code() -> None:
    in_code = {message.text for message in all_messages()} | all_texts()
    stale = {
        line: title
        for title, entry in entries().items()
        for line in listed(entry)
        if line not in in_code
    }
    assert not stale


def test_a_message_is_explained_once() -> None:
    lines = [line for entry in entries().values() for line in listed(entry)]
    assert sorted(lines) == sorted(set(lines))


def test_each_entry_lists_messages_and_says_cause_and_cure() -> None:
    for title, entry in entries().items():
        assert listed(entry), title
        assert "**Cause.**" in entry, title
        assert "**Cure.**" in entry, title


def test_the_code_has_about_as_many_messages_as_are_expected() -> None:
    assert len(all_messages()) > 500  # the collector has not lost its way
