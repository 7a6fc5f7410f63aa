"""Named places where a process fails if it is asked to, and the table of them."""

import errno
import re
import signal
from pathlib import Path

import forking_programs
import pytest
from failpoints import ERRORS, POINTS, VARIABLE, Failpoints

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "reliability.md"

_PASSED = re.compile(r'\bsys\.audit\("relaax\.([^"]*)"\)')
_ROW = re.compile(r"^\| `([a-z.]+)` \| (.+?) \| (.+?) \| `(.+?)` \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str, str]]:
    """The table's failpoints: where each is, the fault, and the test."""
    return _ROW.findall(PAGE.read_text())


def test_each_name_is_passed_in_one_place() -> None:
    sources = (REPOSITORY / "relaax").rglob("*.py")
    passed = [name for path in sources for name in _PASSED.findall(path.read_text())]
    assert sorted(passed) == sorted(POINTS)


def test_the_table_has_all_names_and_says_of_each_where_it_is() -> None:
    assert [(name, where) for name, where, _, _ in rows()] == list(POINTS.items())


@pytest.mark.parametrize(("name", "fault", "test"), [(row[0], row[2], row[3]) for row in rows()])
def test_the_tests_of_the_table_exist_and_use_the_name_and_the_fault(name, fault, test) -> None:
    path, _, function = test.partition("::")
    content = (REPOSITORY / "tests" / path).read_text()
    assert f"def {function}(" in content
    assert f'"{name}' in content
    assert all(each in content for each in fault.split(", "))


def test_an_error_comes_each_time_or_the_nth_time_alone() -> None:
    failpoints = Failpoints.parse("saver.data=ENOSPC, saver.manifest=EIO@2")
    for _ in range(2):
        with pytest.raises(OSError, match=r"failpoint saver\.data") as full:
            failpoints.passing("saver.data")
        assert full.value.errno == errno.ENOSPC
    failpoints.passing("saver.manifest")
    with pytest.raises(OSError, match=r"failpoint saver\.manifest"):
        failpoints.passing("saver.manifest")
    failpoints.passing("saver.manifest")
    failpoints.passing("saver.written")


def test_a_wait_lets_the_process_go_on() -> None:
    Failpoints.parse("saver.data=wait:0.01").passing("saver.data")


def test_a_killed_process_ends_at_the_nth_pass_each_fork_with_its_own_count() -> None:
    program = f"""
        import os, sys
        sys.path.append({str(REPOSITORY / "tests")!r})
        import failpoints
        os.environ["{VARIABLE}"] = "saver.data=kill@2"
        failpoints.install()
        sys.audit("relaax.saver.data")
        if not (pid := os.fork()):
            sys.audit("relaax.saver.data")
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -{signal.SIGKILL.value}
        sys.audit("relaax.saver.manifest")
    """
    forking_programs.run("", program)


def test_an_unknown_name_is_refused_with_all_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"no failpoint 'saver\.dta'") as refused:
        Failpoints.parse("saver.dta=kill")
    assert all(name in str(refused.value) for name in POINTS)


@pytest.mark.parametrize("action", ["", "die", "EPERM", "kill@0", "wait", "wait:-1", "ENOSPC@x"])
def test_an_unknown_action_is_refused_with_all_that_there_are(action) -> None:
    with pytest.raises(ValueError, match=r"saver\.data must be kill, ") as refused:
        Failpoints.parse(f"saver.data={action}")
    assert all(name in str(refused.value) for name in (*ERRORS, "wait:SECONDS"))
