"""A server of MongoDB's protocol for tests: NX-27017, which keeps documents in SQLite.

It is no mongod, of which no package has one; pymongo speaks to it over TCP as to any server. The
variable RELAAX_TEST_MONGODB gives the URL of another one, for example of a mongod.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import free_port


@contextmanager
def mongodb_server(directory: Path) -> Iterator[str]:
    """Run a server within a block; yields its URL. Skip the test where the extra is missing."""
    pymongo = pytest.importorskip("pymongo")
    if "RELAAX_TEST_MONGODB" in os.environ:
        yield os.environ["RELAAX_TEST_MONGODB"]
        return
    port = free_port()
    files = ["--log-file", str(directory / "log"), "--pid-file", str(directory / "pid")]
    program = str(Path(sys.executable).with_name("nx-27017"))
    command = [program, "--db", "memory", "-p", str(port), *files]
    url = f"mongodb://127.0.0.1:{port}/relaax"
    with (directory / "output").open("w") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        with pymongo.MongoClient(url, serverSelectionTimeoutMS=30_000) as client:
            client.admin.command("ping")
        yield url
    finally:
        server.kill()
        server.wait()
