"""An experiment evaluates one version after another while it learns."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from processes import REPOSITORY, wait_for

from relaax.parameters.database import DatabaseName, DatabaseRoot, ParameterDatabase, Type
from relaax.telemetry.metrics import EPISODE_LENGTH, EPISODE_RETURN

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

EXAMPLE = REPOSITORY / "examples" / "experiments" / "evaluated.py"
TAG = "my_evaluation"
GAMES = 3

#: A number of its own: a share of the steps that win an episode.
ENVIRONMENT = """
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.wrappers import TimeLimit


class Counted(TimeLimit):
    def __init__(self):
        super().__init__(CartPoleEnv(), 500)

    def step(self, action):
        *result, info = super().step(action)
        return *result, {**info, "episode_info": {"win_rate": self._elapsed_steps / 500}}
"""


@pytest.mark.parametrize("name", ["evaluated", "evaluated-remote"])
def test_the_tag_of_an_evaluation_moves_and_its_versions_get_metadata(
    tmp_path: Path, name: str
) -> None:
    programs = Path(sys.executable).parent
    shown = [programs / "relaax-experiment", "show", str(EXAMPLE), "-e", name]
    text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    for before, after in (
        ("eval_games_per_version: 20", f"eval_games_per_version: {GAMES}"),
        ("push_frequency_steps: 10", "push_frequency_steps: 1"),
        ("max_global_step: 60000", "max_global_step: 10_000_000"),
        ("type_: CartPole-v1", "type_: counted.py:Counted"),
    ):
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "evaluated.yaml").write_text(text)
    (tmp_path / "counted.py").write_text(ENVIRONMENT)
    log = tmp_path / "log"
    run = [programs / "relaax-experiment", "run", "evaluated.yaml", "-f", "one"]
    with log.open("w") as output, subprocess.Popen(run, cwd=tmp_path, stdout=output) as running:
        try:
            wait_for(
                lambda: log.read_text().count(f"{TAG}: version ") >= 3, "three evaluations", 200
            )
        finally:
            running.terminate()
    said = [
        line.split(f"{TAG}: version ")[1]
        for line in log.read_text().splitlines()
        if f"{TAG}: version " in line
    ]
    versions = [int(each.partition(",")[0]) for each in said]
    assert versions == sorted(set(versions))
    place = tmp_path / f"training/experiments/{name}/one/policies/default/database"
    root = DatabaseRoot(place, Type.METADATA)
    with closing(root.reader(DatabaseName(name, "one", "default"))) as database:
        require_metadata(database, versions, said)
        require_queries(database)


def require_metadata(
    database: ParameterDatabase, versions: Sequence[int], said: Sequence[str]
) -> None:
    """Assert that versions have the means that were ``said`` of them."""
    assert database.version_of(TAG) >= versions[-1]
    words = dict(zip(versions, said, strict=True))
    found = [each for version in versions if (each := database.metadata_of(version)) is not None]
    assert len(found) >= 2  # the latest one may have come without a tag
    for each in found:
        assert each.count >= GAMES
        assert each.md[EPISODE_LENGTH] == each.md[EPISODE_RETURN]  # a reward of 1 for each step
        assert each.md["win_rate"] == pytest.approx(each.md[EPISODE_RETURN] / 500)
        if each.count == GAMES:
            assert f"{EPISODE_RETURN} {each.md[EPISODE_RETURN]:.4g}" in words[each.version]
            assert f"win_rate {each.md['win_rate']:.4g}" in words[each.version]


def require_queries(database: ParameterDatabase) -> None:
    """Assert that a query leads to the versions whose environments have said so."""
    found = [database.metadata_of(version) for version in database.list_versions()]
    rates = {each.version: each.md["win_rate"] for each in found if each is not None and each.md}
    mean = sum(rates.values()) / len(rates)
    better = {version for version, rate in rates.items() if rate > mean}
    assert 0 < len(better) < len(rates)
    query = {"$match": {"md.win_rate": {"$gt": mean}}}
    assert {database.version_of(query) for _ in range(20)} <= better
    best: list[dict[str, Any]] = [{"$sort": {"md.win_rate": -1}}, {"$limit": 1}]
    assert rates[database.version_of(best)] == max(rates.values())
