"""Programs of the system that tests start, and the tests that need them."""

import os
import shutil
import subprocess
import sys

import pytest

#: Debian puts some of them where users do not look.
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def program(name: str) -> str | None:
    """Return the path of a program; None if it is not installed."""
    return shutil.which(name, path=PATH)


def needs(is_there: bool, reason: str) -> pytest.MarkDecorator:
    """Return what skips a test where something is not there.

    With RELAAX_REQUIRE_ALL in the environment, as in ``.ci/run``, the test runs and fails instead.
    """
    return pytest.mark.skipif(_is_skipped(is_there), reason=reason)


def skip_without(is_there: bool, reason: str) -> None:
    """Skip the running test as ``needs`` does, where it takes time to see what is there."""
    if _is_skipped(is_there):
        pytest.skip(reason)


def pip_finds_packages() -> bool:
    """Return whether pip, as it is configured here, reaches an index of packages."""
    looked = subprocess.run(
        [
            sys.executable, "-m", "pip", "--retries", "0", "--timeout", "10", "--quiet",
            "install", "--dry-run", "--no-deps", "--ignore-installed", "honcho",
        ],
        check=False, capture_output=True,
    )  # fmt: skip
    return looked.returncode == 0


def _is_skipped(is_there: bool) -> bool:
    return not is_there and "RELAAX_REQUIRE_ALL" not in os.environ


IS_ROOT = os.geteuid() == 0
