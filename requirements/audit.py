"""Ask a database of vulnerabilities about every version that a lock file names.

The exit status is 0 where nothing is known of any of them, 1 where something is, 2 where an option
cannot be used, and 3 where the database does not answer: what it would say stays unknown then.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from locks import Pin, lock_files, read

#: Exit status: something is known of a version.
VULNERABLE = 1
#: Exit status: the database did not answer.
NO_ANSWER = 3

#: The database of PyPI's advisories, asked for in OSV's own way.
OSV_URL = "https://api.osv.dev/v1/query"

#: How long one run of pip-audit may take: it asks about hundreds of versions, one after another.
DEADLINE_S = 600.0


class NoAnswer(Exception):
    """The database did not answer all questions."""


def questions(pins: Iterable[Pin]) -> list[dict[str, Pin]]:
    """Return pins in groups, each version once; pip-audit takes one version of a name at a time."""
    groups: list[dict[str, Pin]] = []
    for pin in sorted({(pin.name, pin.version): pin for pin in pins}.values(), key=str):
        for group in groups:
            if pin.name not in group:
                group[pin.name] = pin
                break
        else:
            groups.append({pin.name: pin})
    return groups


def ask(group: dict[str, Pin], database: list[str]) -> list[dict[str, Any]]:
    """Return what pip-audit says of each pin: name, version and vulns; NoAnswer if it fails."""
    program = shutil.which("pip-audit", path=str(Path(sys.executable).parent)) or "pip-audit"
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "requirements.txt", Path(folder) / "answer.json"
        asked.write_text("".join(_line(pin) for pin in group.values()))
        command = [
            program, "--requirement", str(asked), "--require-hashes", "--disable-pip",
            "--strict", "--progress-spinner", "off", "--cache-dir", folder, "--desc", "off",
            "--format", "json", "--output", str(answered), *database,
        ]  # fmt: skip
        try:
            done = subprocess.run(  # noqa: S603  # of this environment
                command, capture_output=True, text=True, check=False, timeout=DEADLINE_S
            )
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"nothing came within {DEADLINE_S:g} s") from None
        # It ends with status 1 for both, and writes an answer for vulnerabilities alone.
        if not answered.exists():
            raise NoAnswer((done.stderr.strip().splitlines() or ["no reason was given"])[-1])
        dependencies: list[dict[str, Any]] = json.loads(answered.read_text())["dependencies"]
    if len(dependencies) != len(group):
        raise NoAnswer(f"{len(dependencies)} of {len(group)} questions were answered")
    return dependencies


def main() -> int:
    """Ask, print what is known, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--service", choices=["osv", "pypi"], default="osv",
        help="the database: OSV (default), or the index of packages, which gives what OSV has",
    )  # fmt: skip
    parser.add_argument(
        "--osv-url", default=OSV_URL, help="where OSV is asked (default: %(default)s)"
    )
    options = parser.parse_args()
    database = ["--vulnerability-service", options.service]
    if options.service == "osv":
        database += ["--osv-url", options.osv_url]
    pins = [pin for name in lock_files() for pin in read(name)]
    try:
        told = [each for group in questions(pins) for each in ask(group, database)]
    except NoAnswer as error:
        print(f"audit: the database of vulnerabilities does not answer: {error}", file=sys.stderr)
        return NO_ANSWER
    vulnerable = [each for each in told if each["vulns"]]
    for each in vulnerable:
        for known in each["vulns"]:
            mended = ", ".join(known["fix_versions"]) or "no version"
            print(f"{each['name']} {each['version']}: {known['id']}, mended in {mended}")
    print(f"{len(told)} versions in {len(lock_files())} lock files, {len(vulnerable)} vulnerable")
    return VULNERABLE if vulnerable else 0


def _line(pin: Pin) -> str:
    hashes = " ".join(f"--hash=sha256:{digest}" for digest in pin.sha256)
    return f"{pin.name}=={pin.version} {hashes}\n"


if __name__ == "__main__":
    sys.exit(main())
