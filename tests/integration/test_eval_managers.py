"""An experiment evaluates one version after another while it learns."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from processes import REPOSITORY, wait_for

from relaax.parameters.database import DatabaseName, DatabaseRoot, ParameterDatabase, Type
from relaax.telemetry.metrics import EPISODE_LENGTH, EPISODE_RETURN

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

EXAMPLE = REPOSITORY / "examples" / "experiments" / "evaluated.py"
TAG = "my_evaluation"
GAMES = 3


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
    ):
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "evaluated.yaml").write_text(text)
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
        if each.count == GAMES:
            assert f"{EPISODE_RETURN} {each.md[EPISODE_RETURN]:.4g}" in words[each.version]
