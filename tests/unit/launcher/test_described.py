"""The processes of a Procfile, and what they are told where they run on many machines."""

from pathlib import Path

import pytest
import yaml

from relaax.address import Address
from relaax.configuration import load_actor, load_learner, load_parameter_server, load_rlx_server
from relaax.errors import ConfigurationError
from relaax.launcher.described import copied, described, told

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


def planned(lines, counts):
    return copied(described(lines), counts, {})


def options_of(process):
    """What a program reads that is told other addresses."""
    arguments = [word.value for word in process.command.arguments(process.word)]
    return LOADERS[process.program](arguments).options


def test_without_counts_each_line_is_one_process_by_its_name(lines):
    processes = planned(lines, {})
    assert [(p.name, p.copy, p.text) for p in processes] == [
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


def test_servers_that_have_a_name_of_their_own_have_no_copies(lines):
    with pytest.raises(ConfigurationError, match="ps runs relaax-parameter-server, of which each"):
        planned(lines, {"ps": 2})


def test_copies_of_actors_answer_operators_at_ports_in_a_row(tmp_path):
    path = tmp_path / "sac.yaml"
    path.write_text(yaml.safe_dump({"algorithm": {"name": "sac", "action_size": 1}}))
    lines = {"a": f"relaax-actor {path} --env E --actors 2 --http-bind localhost:7300"}
    first, second = planned(lines, {"a": 2})
    assert [each.port for each in first.for_operators] == [7300, 7301]
    assert [each.port for each in second.for_operators] == [7302, 7303]
    assert options_of(told([first, second], {})["a.2"]).http_bind == Address("localhost", 7302)


def test_servers_listen_where_they_are_and_others_are_told_so(lines):
    found = told(planned(lines, {"rlx": 2, "env": 3}), PLACES)
    assert found["ps"].text == f"{lines['ps']} --bind 10.0.0.1:41000"
    for name, address in (("rlx.1", "10.0.0.2"), ("rlx.2", "10.0.0.3")):
        flags = f"--parameter-server 10.0.0.1:41000 --bind {address}:42000"
        assert found[name].text == f"{lines['rlx']} {flags}"
        assert options_of(found[name]).workers == 2
    for name, address in (("env.1", "10.0.0.2"), ("env.2", "10.0.0.3"), ("env.3", "10.0.0.2")):
        expected = f"exec python my.py --rlx-server {address}:42000 --port 17001"
        assert found[name].text == expected


def test_all_that_talk_to_shards_are_told_where_each_of_them_is(tmp_path):
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
        "actor": f"relaax-actor {path} --env Pendulum-v1",
    }
    names = ("ps1", "ps2", "rlx.1", "rlx.2", "learner")
    places = {name: Address(f"10.0.0.{n}", 7000 + n) for n, name in enumerate(names, 1)}
    for found in told(planned(lines, {"rlx": 2}), places).values():
        options = options_of(found)
        if found.program == "relaax-parameter-server":
            assert options.place == places[found.name]
            shards = options.shards
        else:
            shards = options.parameter_server
        assert [str(each) for each in shards] == ["10.0.0.1:7001", "10.0.0.2:7002"], found.name
        if found.name in places:
            assert options.bind == places[found.name]


def test_addresses_that_are_not_written_are_told_too(tmp_path):
    path = tmp_path / "sac.yaml"
    path.write_text(yaml.safe_dump({"algorithm": {"name": "sac", "action_size": 1}}))
    lines = {
        "learner": f"relaax-learner --config {path}",
        "drawing": f"relaax-learner --config {path} --replay-servers localhost:7004 other:7005",
        "rlx": f"relaax-rlx-server --config {path}",
        "actor": f"relaax-actor --config {path} --env Pendulum-v1 2>&1 | tee log",
        "replay": f"relaax-replay-server --config {path} --bind localhost:7004",
    }
    places = {
        name: Address(f"10.0.0.{number}", 7000 + number)
        for number, name in enumerate(("learner", "rlx", "actor", "replay"), 1)
    }
    found = {name: each.text for name, each in told(planned(lines, {}), places).items()}
    # Nothing listens at the parameter server's, which stays as it is.
    assert found == {
        "learner": f"{lines['learner']} --bind 10.0.0.1:7001",
        # A learner that draws from replay servers listens nowhere.
        "drawing": f"{lines['drawing']} --replay-servers 10.0.0.4:7004 other:7005",
        "rlx": f"{lines['rlx']} --learner 10.0.0.1:7001 --bind 10.0.0.2:7002",
        "actor": lines["actor"].replace(" 2>&1", " --learner 10.0.0.1:7001 2>&1"),
        "replay": f"{lines['replay']} --bind 10.0.0.4:7004",
    }


@pytest.mark.parametrize(
    ("written", "now"),
    [
        ("play --rlx-server=localhost:7001", "play --rlx-server=10.0.0.2:42000"),
        ("SERVER=localhost:7001 play 'a b'", "SERVER=10.0.0.2:42000 play 'a b'"),
        ("play ws://127.0.0.1:7001/x", "play ws://10.0.0.2:42000/x"),
        ('play \'{"at": "localhost:7001"}\'', 'play \'{"at": "10.0.0.2:42000"}\''),
        ("play xlocalhost:7001 localhost:70011 1.localhost:7001", None),
        ("play $SERVER # it's", None),
    ],
)
def test_addresses_are_replaced_in_the_words_of_another_program(lines, written, now):
    found = told(planned({**lines, "env": written}, {"rlx": 1}), {"rlx": PLACES["rlx.1"]})
    assert found["env"].text == (now or written)


@pytest.mark.parametrize("written", ["in the file", "as a flag"])
def test_copies_answer_operators_one_port_further_each(lines, tmp_path, written):
    if written == "as a flag":
        lines["rlx"] = lines["rlx"].replace("server ", "server --http-bind 0.0.0.0:9100 ")
    else:
        section = {**CONFIGURATION["relaax-rlx-server"], "--http-bind": "0.0.0.0:9100"}
        text = yaml.safe_dump({**CONFIGURATION, "relaax-rlx-server": section})
        (tmp_path / "my.yaml").write_text(text)
    found = told(planned(lines, {"rlx": 2}), PLACES)
    for name, port in (("rlx.1", 9100), ("rlx.2", 9101)):
        assert options_of(found[name]).http_bind == Address("0.0.0.0", port)  # noqa: S104


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exec relaax-learner a.yaml", ("relaax-learner", ["a.yaml"])),
        ("A=1 /x/relaax-learner --config 'a b.yaml' 2>&1 | grep x",
         ("relaax-learner", ["--config", "a b.yaml"])),
        ("relaax-rlx-server --config a\\ b; echo done",
         ("relaax-rlx-server", ["--config", "a b"])),
        ("relaax-rlx-server --seed 2 > log", ("relaax-rlx-server", ["--seed", "2"])),
        ("cd x && relaax-learner --x=\"y'z\"''", ("relaax-learner", ["--x=y'z"])),
        ("tensorboard --logdir relaax", ("", [])),
    ],
)  # fmt: skip
def test_the_program_of_a_shell_command(command, expected):
    (process,) = described({"it": command})
    arguments = process.command.arguments(process.word) if process.program else ()
    assert (process.program, [word.value for word in arguments]) == expected


@pytest.mark.parametrize(
    ("command", "is_started"),
    [("A=1 exec relaax-learner", True), ("a; env B=2 relaax-learner", True),
     ("ssh host relaax-learner", False), ("nice -n 5 relaax-learner", False)],
)  # fmt: skip
def test_a_program_may_be_the_argument_of_another_one(command, is_started):
    assert described({"it": command})[0].is_started_here is is_started


def test_a_command_that_no_shell_takes_is_a_mistake():
    (process,) = described({"it": "relaax-learner 'a.yaml"})
    assert "is no shell command" in process.mistake
    with pytest.raises(ConfigurationError, match="is no shell command"):
        copied([process], {}, {})


def test_settings_are_handed_on_and_read(lines):
    ps, _, env = described(lines, ["algorithm.action_size=[1, 2]"])
    assert ps.text == f"{lines['ps']} --set 'algorithm.action_size=[1, 2]'"
    assert ps.algorithm.parameters["action_size"] == [1, 2]
    assert env.text == lines["env"]
    assert "--set algorithm: must be" in described(lines, ["algorithm"])[0].mistake


def test_processes_are_told_which_line_copy_and_start_they_are(lines):
    common = {"RELAAX_INCARNATION": "500", "A": "b"}
    found = {each.name: each.variables(common, 2) for each in planned(lines, {"env": 2})}
    own = {"RELAAX_COPY": "1", "RELAAX_LINE": "env", "RELAAX_INCARNATION": "502"}
    assert found["env.2"] == {"A": "b", **own}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", True), (" --replica-of localhost:7000 --bind localhost:7100", False),
        (" --replica-of $PRIMARY", False), (" --shards a:7000 b:7000 --shard 1/2", True),
        (" --shards a:7000 b:7000 --shard 2/2", False), (" --checkpoint-dir $HOME/x", True),
    ],
)  # fmt: skip
def test_a_replica_and_a_further_shard_begin_no_training(lines, flags, expected):
    ps, rlx, _ = described({**lines, "ps": lines["ps"] + flags})
    assert ps.begins_training() is expected
    assert not rlx.begins_training()
