"""docs/licences.md names the licence of all that is installed with the servers."""

import licences
from licences import PAGE, page
from locks import read


def test_the_page_agrees_with_the_lock_file_and_with_what_is_installed() -> None:
    assert PAGE.read_text() == page(), "run make licences"


def test_no_licence_is_read_by_hand_that_the_metadata_names_by_now() -> None:
    for name in licences.READ_BY_HAND:
        said = licences.metadata(name)
        assert not said.get("License-Expression")
        assert not said.get("License")


def test_the_image_of_the_servers_has_nothing_under_the_general_public_license() -> None:
    listed = [line.split(" | ") for line in PAGE.read_text().splitlines() if " | " in line]
    copyleft = {row[0].removeprefix("| ") for row in listed if "GPL" in row[2]}
    assert copyleft == {"ale-py", "pygame-ce"}
    assert not copyleft & {pin.name for pin in read("images/servers-cpu.txt")}
