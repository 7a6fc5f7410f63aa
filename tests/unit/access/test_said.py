"""What is said once, whichever process notices it."""

import os

from relaax.access.said import Said, said_of


def test_a_content_is_new_until_it_was_given_and_again_after_another_one():
    said = Said()
    assert [said.is_new(content) for content in (b"a", b"a", b"b", b"b", b"a")] == [1, 0, 1, 0, 1]


def test_what_one_process_has_said_no_other_says_again():
    said = Said()
    child = os.fork()
    if child == 0:
        os._exit(0 if said.is_new(b"a") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not said.is_new(b"a")
    assert said.is_new(b"b")


def test_the_ports_of_a_process_say_together_what_they_say_of_a_file(tmp_path):
    assert said_of(tmp_path / "server.crt", "certificate").is_new(b"a")
    assert not said_of(tmp_path / "server.crt", "certificate").is_new(b"a")
    assert said_of(tmp_path / "other.crt", "certificate").is_new(b"a")


def test_matters_of_a_file_are_told_apart_and_what_it_begins_with_is_no_news(tmp_path):
    path = tmp_path / "both.pem"
    said = said_of(path, "certificate")
    said.begin_with(b"a")
    assert said_of(path, "mode").is_new(b"a")
    assert not said.is_new(b"a")
    said.begin_with(b"b")  # a port that is made later
    assert said.is_new(b"b")
