"""What ``make audit`` and ``make sbom`` say of the lock files."""

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from locks import FOLDER, lock_files, read
from processes import REPOSITORY

pytestmark = pytest.mark.integration

LOCKED = {(pin.name, pin.version) for name in lock_files() for pin in read(name)}

#: A lock file of few packages.
SMALL = "images/ale.txt"

#: What a database in OSV's format says of a version that should not be used.
KNOWN = {
    "id": "PYSEC-2026-1",
    "summary": "reads what it should not",
    "affected": [
        {
            "package": {"name": "pyyaml", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.0"}]}],
        }
    ],
}


class Database(ThreadingHTTPServer):
    """Answers what OSV is asked, of nothing but ``vulnerable``; with another status, if given."""

    daemon_threads = True

    def __init__(self, vulnerable: str = "", status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.vulnerable = vulnerable
        self.status = status
        self.asked: set[tuple[str, str]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/query"


class _Answers(BaseHTTPRequestHandler):
    server: Database

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = asked["package"]["name"]
        self.server.asked.add((name, asked["version"]))
        answer = json.dumps({"vulns": [KNOWN]} if name == self.server.vulnerable else {}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(database: Database) -> Iterator[Database]:
    thread = threading.Thread(target=database.serve_forever)
    thread.start()
    try:
        yield database
    finally:
        database.shutdown()
        thread.join()
        database.server_close()


def audit(url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FOLDER / "audit.py"), "--osv-url", url],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_every_locked_version_is_asked_about() -> None:
    with serving(Database()) as database:
        done = audit(database.url)
    assert done.returncode == 0, done.stderr
    assert database.asked == LOCKED
    assert done.stdout.endswith(
        f"{len(LOCKED)} versions in {len(lock_files())} lock files, 0 vulnerable\n"
    )


def test_a_known_vulnerability_is_named_and_ends_with_status_1() -> None:
    with serving(Database(vulnerable="pyyaml")) as database:
        done = audit(database.url)
    assert done.returncode == 1, done.stderr
    assert "PYSEC-2026-1, mended in 99.0\n" in done.stdout
    assert done.stdout.endswith("lock files, 1 vulnerable\n")


def test_a_database_that_is_not_reached_is_no_success() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # free again: nothing listens there
    done = audit(f"http://127.0.0.1:{port}/v1/query")
    assert done.returncode == 3
    assert done.stderr.startswith("audit: the database of vulnerabilities does not answer: ")
    assert done.stdout == ""


def test_a_database_that_fails_is_no_success() -> None:
    with serving(Database(status=500)) as database:
        done = audit(database.url)
    assert done.returncode == 3
    assert done.stdout == ""


def test_a_list_of_what_is_installed_is_valid_and_has_each_package(tmp_path: Path) -> None:
    """CycloneDX's own schema, which its library has with it; a small list, as that takes long."""
    commands = sbom_commands(f"SHIPPED={SMALL}").replace("build/sbom", str(tmp_path))
    subprocess.run(["sh", "-c", commands], cwd=REPOSITORY, check=True, capture_output=True)
    text = (tmp_path / f"{Path(SMALL).stem}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    there = {(each["name"], each["version"]) for each in json.loads(text)["components"]}
    assert there == {(pin.name, pin.version) for pin in read(SMALL)}


def test_all_that_users_run_is_listed() -> None:
    ours = {"build.txt", "fuzz.txt", "pip.txt", "test.txt"}
    shipped = set(lock_files()) - ours
    (listed,) = re.findall(r"for lock in (.*); do", sbom_commands())
    assert set(listed.split()) == shipped


def sbom_commands(*variables: str) -> str:
    """Return what ``make sbom`` does in this environment, after the installation."""
    commands = subprocess.run(
        [
            "make", "--dry-run", "--no-print-directory",
            f"VENV={Path(sys.executable).parent.parent}", *variables, "sbom",
        ],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return commands[commands.index("mkdir -p build/sbom") :]
