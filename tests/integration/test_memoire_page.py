"""docs/memoire.md: its programs run as they are written, and learn."""

import re
import signal
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from memoire_entries import ENTRY, memory_of, push
from processes import REPOSITORY, Process, free_port, wait_for

from relaax.compat import memoire
from relaax.compat.memoire import ReplayMemory

pytestmark = pytest.mark.integration

PAGE = (REPOSITORY / "docs" / "memoire.md").read_text()
PROGRAMS = dict(re.findall(r"^`(\w+)\.py`:\n\n```python\n(.*?)```$", PAGE, re.M | re.S))
SNIPPETS = re.findall(r"[.:]\n\n```python\n(.*?)```$", PAGE, re.M | re.S)


class Programs:
    """The page's programs in a directory, at free ports."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: list[Process] = []
        self.ports = {port: str(free_port()) for port in set(re.findall(r":(\d{4})\"", PAGE))}

    def run(self, name: str, *arguments: str, behind_proxy: bool = False) -> Process:
        code = PROGRAMS[name]
        if behind_proxy:
            code = code.replace(":5", ":6")
        for port, free in self.ports.items():
            code = code.replace(f":{port}", f":{free}")
        path = self._directory / f"{name}.py"
        path.write_text(code)
        self._running.append(
            Process(name, [sys.executable, str(path), *arguments], self._directory)
        )
        return self._running[-1]

    def close(self) -> None:
        for process in self._running:
            process.kill_family()
            print(process.name, process.output())


@pytest.fixture(name="programs")
def _programs(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setenv("RELAAX_INSECURE", "1")  # as the page says: they listen everywhere
    programs = Programs(tmp_path)
    yield programs
    programs.close()


def test_the_programs_learn_to_walk_to_the_right(programs, tmp_path):
    server = programs.run("server")
    actor = programs.run("actor", "60")
    proxy = programs.run("proxy")
    another = programs.run("actor", "60", behind_proxy=True)
    learner = programs.run("learner", "300")
    assert [process.wait() for process in (actor, another, learner)] == [0, 0, 0]
    assert learner.output() == "right is better in 9 of 9 rooms\n"
    lines = (tmp_path / "actors.log").read_text().splitlines()
    assert len(lines) == 120
    assert re.fullmatch(r"\d+\.\d+,[0-9a-f]{16},episode \d+ took \d+ steps", lines[0])
    for process in (proxy, server):
        process.signal(signal.SIGINT)
    assert [proxy.wait(), server.wait()] == [0, 0]
    wait_for(lambda: "8 slots of 10000 entries" in server.output(), "what the server prints")


def test_the_pages_import_is_all_that_is_exported():
    (names,) = re.findall(
        r"^from relaax.compat.memoire import (.*, ReplayMemoryServer)$", PAGE, re.M
    )
    assert set(names.split(", ")) <= set(memoire.__all__)


def test_importance_weights_are_found_as_the_page_says():
    memory = memory_of(max_step=8, priority_exponent=1.0)
    numbers = np.arange(4, dtype=np.float32)
    push(memory, range(4), is_term=True, rewards=numbers, values=-numbers - 1)
    (code,) = [snippet for snippet in SNIPPETS if "importance" in snippet]
    with closing(memory):
        names = {"server": memory}
        exec(code, names)  # noqa: S102 - the page's own code
    sample, importance = names["sample"], names["importance"]
    weights = sample.columns["weight"]
    np.testing.assert_allclose(importance, (weights / weights.min()) ** -0.4, rtol=1e-5)
    assert importance.max() == 1
    assert names["rewards"].shape == (256, 1)


def test_every_property_of_the_page_is_one():
    table, reading = re.search(
        r"## Properties of `server.rem`\n(.*?)\nRead only: (.*?)\. Properties", PAGE, re.S
    ).groups()
    settable = [
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.M)
        for name in re.findall(r"`(\w+)`", row)
    ]
    memory = ReplayMemory(ENTRY, 8, 2)
    assert len(settable) == 12
    for name in settable:
        setattr(memory, name, getattr(memory, name))
    for name in re.findall(r"`(\w+)`", reading):
        assert hasattr(memory, name)
    (refused,) = re.findall(r"version 3: (.*?) \|.*\| refused", PAGE)
    for name in re.findall(r"`(\w+)`", refused):
        with pytest.raises(AttributeError):
            setattr(memory, name, 1)
