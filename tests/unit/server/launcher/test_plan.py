"""What the processes of a Procfile are told, where they run on many machines."""

import shlex
from pathlib import Path

import pytest
import yaml

from relaax.address import Address
from relaax.errors import ConfigurationError
from relaax.server.launcher.engines.plan import planned, program_in, told

CONFIGURATION = {
    "relaax-parameter-server": {"--checkpoint-dir": "training/checkpoints"},
    "relaax-rlx-server": {"--parameter-server": "localhost:7000", "--workers": 2},
    "algorithm": {"name": "da3c", "action_size": 2, "state_size": [4]},
}

PLACES = {
    "ps": Address("10.0.0.1", 41000),
    "rlx.1": Address("10.0.0.2", 42000),
    "rlx.2": Address("10.0.0.3", 42000),
}


@pytest.fixture(name="lines")
def _lines(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "my.yaml"
    path.write_text(yaml.safe_dump(CONFIGURATION))
    return {
        "ps": f"exec relaax-parameter-server --config {path}",
        "rlx": f"exec relaax-rlx-server --config {path}",
        "env": "exec python my.py --rlx-server 127.0.0.1:7001 --port 17001",
    }


def files_of(found) -> dict:
    ((path, text),) = found.files.items()
    assert shlex.split(found.command)[-1] == str(path)
    return yaml.safe_load(text)


def test_without_counts_each_line_is_one_process_by_its_name(lines):
    processes = planned(lines, {})
    assert [(p.name, p.copy, p.command) for p in processes] == [
        (name, 0, command) for name, command in lines.items()
    ]
    assert [p.listens for p in processes] == [
        Address("localhost", 7000), Address("localhost", 7001), None,
    ]  # fmt: skip


def test_copies_have_numbers(lines):
    names = [process.name for process in planned(lines, {"rlx": 2, "env": 3})]
    assert names == ["ps", "rlx.1", "rlx.2", "env.1", "env.2", "env.3"]


def test_a_count_of_a_line_that_is_not_there_names_those_that_are(lines):
    with pytest.raises(ConfigurationError, match="has no 'envs'; it has ps, rlx, env"):
        planned(lines, {"envs": 2})


def test_servers_listen_where_they_are_and_others_are_told_so(lines, tmp_path):
    processes = planned(lines, {"rlx": 2, "env": 3})
    ps, *rlx, env1, env2, env3 = told(processes, PLACES, tmp_path)
    assert files_of(ps)["relaax-parameter-server"]["--bind"] == "10.0.0.1:41000"
    for found, address in zip(rlx, ("10.0.0.2:42000", "10.0.0.3:42000"), strict=True):
        section = files_of(found)["relaax-rlx-server"]
        assert section == {
            "--bind": address, "--parameter-server": "10.0.0.1:41000", "--workers": 2,
        }  # fmt: skip
    for found, address in ((env1, "10.0.0.2"), (env2, "10.0.0.3"), (env3, "10.0.0.2")):
        expected = f"exec python my.py --rlx-server {address}:42000 --port 17001"
        assert (found.command, found.files) == (expected, {})


def test_a_file_keeps_its_name_and_its_algorithm_is_found_from_anywhere(lines, tmp_path):
    lines["ps"] = lines["ps"].replace("my.yaml", "mine/other.yaml")
    folder = tmp_path / "mine"
    (folder / "alg").mkdir(parents=True)
    (folder / "alg" / "__init__.py").touch()
    content = {**CONFIGURATION, "algorithm": {"path": "alg", "action_size": 2}}
    (folder / "other.yaml").write_text(yaml.safe_dump(content))
    ps = told(planned(lines, {"rlx": 2}), PLACES, tmp_path / "told")[0]
    assert files_of(ps)["algorithm"] == {"path": str(folder / "alg"), "action_size": 2}
    assert [path.name for path in ps.files] == ["other.yaml"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exec relaax-learner a.yaml", ("relaax-learner", ["a.yaml"])),
        ("A=1 /x/relaax-learner --config 'a b.yaml' 2>&1 | grep x",
         ("relaax-learner", ["--config", "a b.yaml"])),
        ("relaax-rlx-server --config a.yaml; echo done",
         ("relaax-rlx-server", ["--config", "a.yaml"])),
        ("relaax-rlx-server --seed 2 > log", ("relaax-rlx-server", ["--seed", "2"])),
        ("tensorboard --logdir relaax", None),
    ],
)  # fmt: skip
def test_the_program_of_a_shell_command(command, expected):
    assert program_in(command) == expected


def test_a_command_that_no_shell_takes_is_an_error():
    with pytest.raises(ConfigurationError, match="is no shell command"):
        program_in("relaax-learner 'a.yaml")


def test_addresses_that_are_not_written_are_told_too(tmp_path):
    path = tmp_path / "sac.yaml"
    path.write_text(yaml.safe_dump({"algorithm": {"name": "sac", "action_size": 1}}))
    processes = planned(
        {
            "learner": f"relaax-learner --config {path}",
            "rlx": f"relaax-rlx-server --config {path}",
            "actor": f"relaax-actor --config {path} --env Pendulum-v1",
            "replay": f"relaax-replay-server --config {path} --bind localhost:7004",
        },
        {},
    )
    places = {
        name: Address(f"10.0.0.{number}", 7000 + number)
        for number, name in enumerate(("learner", "rlx", "actor", "replay"), 1)
    }
    learner, rlx, actor, replay = told(processes, places, tmp_path / "told")
    assert files_of(learner)["relaax-learner"] == {"--bind": "10.0.0.1:7001"}
    expected = {"--learner": "10.0.0.1:7001"}  # nothing listens at the parameter server's
    assert files_of(rlx)["relaax-rlx-server"] == {**expected, "--bind": "10.0.0.2:7002"}
    assert replay.command.endswith("--bind 10.0.0.4:7004")
    (content,) = map(yaml.safe_load, actor.files.values())
    assert content["relaax-actor"] == expected


def test_servers_that_have_a_name_of_their_own_have_no_copies(lines):
    with pytest.raises(ConfigurationError, match="ps runs relaax-parameter-server, of which each"):
        planned(lines, {"ps": 2})
