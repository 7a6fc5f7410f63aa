"""What the processes of a Procfile are told, where they run on many machines."""

import shlex
from pathlib import Path

import pytest
import yaml

from relaax.address import Address
from relaax.configuration import load_actor, load_learner, load_parameter_server, load_rlx_server
from relaax.errors import ConfigurationError
from relaax.launcher.engines.plan import begins_training, planned, program_in, told

CONFIGURATION = {
    "relaax-parameter-server": {"--checkpoint-dir": "training/checkpoints"},
    "relaax-rlx-server": {"--parameter-server": "localhost:7000", "--workers": 2},
    "algorithm": {"name": "da3c", "action_size": 2, "state_size": [4]},
}

LOADERS = {
    "relaax-parameter-server": load_parameter_server,
    "relaax-rlx-server": load_rlx_server,
    "relaax-learner": load_learner,
    "relaax-actor": load_actor,
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


def test_all_that_talk_to_shards_are_told_where_each_of_them_is(tmp_path):
    """Each file is one that its program takes."""
    path = tmp_path / "shards.yaml"
    content = {
        "relaax-parameter-server": {"--shards": ["localhost:7000", "localhost:7010"]},
        "algorithm": {"name": "sac", "action_size": 1, "state_size": [3]},
    }
    path.write_text(yaml.safe_dump(content))
    lines = {
        "ps1": f"relaax-parameter-server --shard 1/2 --config {path}",
        "ps2": f"relaax-parameter-server --shard 2/2 --config {path}",
        "rlx": f"relaax-rlx-server --config {path}",
        "learner": f"relaax-learner --config {path}",
        "actor": f"relaax-actor --config {path} --env Pendulum-v1",
    }
    names = ("ps1", "ps2", "rlx.1", "rlx.2", "learner")
    places = {name: Address(f"10.0.0.{n}", 7000 + n) for n, name in enumerate(names, 1)}
    for found in told(planned(lines, {"rlx": 2}), places, tmp_path / "told"):
        ((written, text),) = found.files.items()
        written.parent.mkdir(parents=True)
        written.write_text(text)
        program, arguments = program_in(found.command)
        options = LOADERS[program](arguments).options
        shards = options.shards if program == "relaax-parameter-server" else (
            options.parameter_server
        )  # fmt: skip
        assert [str(each) for each in shards] == ["10.0.0.1:7001", "10.0.0.2:7002"], found.name
        if found.name in places and program != "relaax-parameter-server":
            assert options.bind == places[found.name]


@pytest.mark.parametrize("folder", ["told", "told to run"])
@pytest.mark.parametrize(
    "written", ["./my.yaml", "sub/..//my.yaml", "'my.yaml'", '"./my.yaml"', "my.yaml; echo done"]
)
def test_a_file_is_replaced_however_its_path_is_written(
    lines, tmp_path, monkeypatch, written, folder
):
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    lines = {"ps": f"exec relaax-parameter-server --config {written}"}
    (ps,) = told(planned(lines, {}), PLACES, tmp_path / folder)
    ((path, text),) = ps.files.items()
    assert program_in(ps.command) == ("relaax-parameter-server", ["--config", str(path)])
    assert yaml.safe_load(text)["relaax-parameter-server"]["--bind"] == "10.0.0.1:41000"


def test_the_file_of_a_network_is_found_beside_the_file_of_the_training(lines, tmp_path):
    (tmp_path / "net.yaml").write_text("[]")
    content = {**CONFIGURATION, "algorithm": {"name": "da3c", "network": "net.yaml"}}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(content))
    ps = told(planned(lines, {"rlx": 2}), PLACES, tmp_path / "told")[0]
    assert files_of(ps)["algorithm"]["network"] == str(tmp_path / "net.yaml")


def test_the_copy_of_a_file_has_the_access_that_it_names(lines, tmp_path):
    (tmp_path / "access.yaml").write_text("--insecure: true\n")
    content = {**CONFIGURATION, "access": "access.yaml"}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(content))
    ps = told(planned(lines, {"rlx": 2}), PLACES, tmp_path / "job")[0]
    assert files_of(ps)["access"] == {"--insecure": True}


@pytest.mark.parametrize("section", ["access", "relaax-parameter-server"])
def test_the_copy_of_a_file_finds_the_certificates_beside_the_file(lines, tmp_path, section):
    (tmp_path / "ca.crt").touch()
    keys = {**CONFIGURATION.get(section, {}), "--tls-ca": "ca.crt"}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump({**CONFIGURATION, section: keys}))
    ps = told(planned(lines, {"rlx": 2}), PLACES, tmp_path / "job")[0]
    assert files_of(ps)[section]["--tls-ca"] == str(tmp_path / "ca.crt")


def test_a_file_that_cannot_be_replaced_is_an_error(lines, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = {"ps": r"exec relaax-parameter-server --config m\y.yaml"}
    with pytest.raises(ConfigurationError, match="cannot put another file in the place of"):
        told(planned(lines, {}), PLACES, tmp_path / "told")


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


def test_processes_are_told_which_line_and_which_copy_they_are(lines):
    found = {each.name: each.variables() for each in planned(lines, {"env": 2})}
    assert found["env.2"] == {"RELAAX_COPY": "1", "RELAAX_LINE": "env"}
    assert found["rlx"] == {"RELAAX_COPY": "0", "RELAAX_LINE": "rlx"}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", True), (" --replica-of localhost:7000 --bind localhost:7100", False),
        (" --replica-of $PRIMARY", False), (" --shards a:7000 b:7000 --shard 1/2", True),
        (" --shards a:7000 b:7000 --shard 2/2", False), (" --checkpoint-dir $HOME/x", True),
    ],
)  # fmt: skip
def test_a_replica_and_a_further_shard_begin_no_training(lines, flags, expected):
    assert begins_training(lines["ps"] + flags) is expected
    assert not begins_training(lines["rlx"])


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


@pytest.mark.parametrize("written", ["in the file", "as a flag"])
def test_copies_answer_operators_one_port_further_each(lines, tmp_path, written):
    if written == "as a flag":
        lines["rlx"] = lines["rlx"].replace("server ", "server --http-bind 0.0.0.0:9100 ")
    else:
        section = {**CONFIGURATION["relaax-rlx-server"], "--http-bind": "0.0.0.0:9100"}
        text = yaml.safe_dump({**CONFIGURATION, "relaax-rlx-server": section})
        (tmp_path / "my.yaml").write_text(text)
    found = {each.name: each for each in told(planned(lines, {"rlx": 2}), PLACES, tmp_path / "on")}
    for name, port in (("rlx.1", 9100), ("rlx.2", 9101)):
        address = files_of(found[name])["relaax-rlx-server"].get("--http-bind")
        if written == "as a flag":
            assert f"--http-bind 0.0.0.0:{port} " in found[name].command
        else:
            assert address == f"0.0.0.0:{port}"


def test_servers_that_have_a_name_of_their_own_have_no_copies(lines):
    with pytest.raises(ConfigurationError, match="ps runs relaax-parameter-server, of which each"):
        planned(lines, {"ps": 2})
