"""What ``relaax-train`` says of a configuration before it starts anything."""

import re
from datetime import datetime

import pytest
import yaml

from relaax.launcher.check import check, doubts_in, missing_programs
from relaax.launcher.described import described
from relaax.launcher.process_log import BEGINS, ProcessLog

SAC = {"name": "sac", "action_size": 1, "state_size": [3]}


@pytest.fixture(name="case")
def _case(tmp_path):
    return Case(tmp_path)


class Case:
    """A YAML file, and the lines of a Procfile that read it."""

    def __init__(self, folder):
        self.path = folder / "my.yaml"
        self.sections = {
            "relaax-rlx-server": {"--learner": "localhost:7002"},
            "relaax-learner": {"--bind": "localhost:7002"},
            "algorithm": dict(SAC),
        }
        self.lines = {
            name: f"exec relaax-{program} --config {self.path}"
            for name, program in (
                ("ps", "parameter-server"), ("learner", "learner"), ("rlx", "rlx-server"),
            )
        }  # fmt: skip
        self.lines["env"] = "environments/mine --rlx-server localhost:7001 $FLAGS"

    def check(self):
        self.path.write_text(yaml.safe_dump(self.sections))
        return check(described(self.lines))


def test_nothing_is_wrong_with_what_fits(case):
    found = case.check()
    assert (found.mistakes, found.doubts) == ([], [])


def test_a_mistake_names_the_process_the_file_and_the_key(case):
    case.sections["relaax-rlx-server"]["--workerss"] = 2
    (mistake,) = case.check().mistakes
    assert mistake.startswith(f"rlx: {case.path}: relaax-rlx-server: --workerss: no such key")


def test_a_mistake_in_the_algorithm_s_section_is_said_once(case):
    case.sections["algorithm"]["learning_rats"] = 1
    (mistake,) = case.check().mistakes
    assert mistake.startswith(f"{case.path}: algorithm: learning_rats: no such key")


def test_a_mistake_that_several_processes_read_is_said_once(case):
    case.sections["algorithm"]["name"] = "sacc"
    (mistake,) = case.check().mistakes
    assert mistake.startswith(f"ps, learner, rlx: {case.path}: algorithm: name: unknown algorithm")


def test_two_processes_at_one_port_are_named(case):
    case.sections["relaax-learner"]["--bind"] = "localhost:7000"
    assert "ps and learner both listen at port 7000: give one of them another --bind" in (
        case.check().mistakes
    )


def test_learners_beside_replay_servers_listen_at_no_port(case):
    case.sections["relaax-learner"] |= {"--replay-servers": ["localhost:7003"]}
    case.lines["second"] = f"{case.lines['learner']} --checkpoint-dir second"
    case.lines["replay"] = f"relaax-replay-server --config {case.path} --bind localhost:7003"
    assert case.check().mistakes == []


def test_an_address_at_which_no_process_listens_is_named(case):
    case.sections["relaax-learner"]["--bind"] = "localhost:7005"
    assert case.check().mistakes == [
        "rlx connects to localhost:7002 (--learner), and the relaax-learner of this Procfile "
        "listens at port 7005"
    ]


def test_an_inference_server_that_does_not_listen_where_it_is_asked_is_named(case):
    case.sections["relaax-rlx-server"]["--inference-servers"] = ["localhost:7005", "localhost:7006"]
    case.lines["inference"] = f"relaax-inference-server --config {case.path} --bind localhost:7006"
    assert case.check().mistakes == [
        "rlx connects to localhost:7005 (--inference-servers), and the relaax-inference-server of "
        "this Procfile listens at port 7006"
    ]


def test_a_learner_that_is_missing_is_missed(case):
    del case.lines["learner"]
    (mistake,) = case.check().mistakes
    assert mistake.startswith("no line runs relaax-learner, which this algorithm needs")


def test_a_learner_of_an_algorithm_that_learns_in_its_workers_is_refused(case):
    case.sections["algorithm"] = {"name": "da3c", "action_size": 2, "state_size": [4]}
    (mistake,) = case.check().mistakes
    assert re.match(r"learner: algorithm .*da3c has no learner: its workers learn", mistake)


def test_another_number_of_learners_than_is_configured_is_doubtful(case):
    case.sections["algorithm"]["learners"] = {"count": 2}
    (doubt,) = case.check().doubts
    assert doubt.endswith("count is 2, and the number of lines that run relaax-learner is 1")
    case.sections["algorithm"]["learners"] = 2
    (mistake,) = case.check().mistakes
    assert mistake.endswith("learners: must be a section of keys: write {count: 2}")


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("exec pyhton mine.py", "there is no program pyhton"),
        ("A=1 ./mine.sh 2>&1 | tee log", "there is no program ./mine.sh"),
        ("exec python nowhere.py", "there is no file nowhere.py"),
    ],
)
def test_a_program_that_is_missing_is_named(line, mistake):
    assert list(missing_programs(described({"env": line}))) == [f"env: {mistake}"]


@pytest.mark.parametrize(
    "line",
    [
        "while true; do mine; done", "(mine)", "cd x && mine", "$MINE", "PATH=x:y mine",
        "ulimit -n 9", "python -m mine", "nice mine.py", "env -i sh mine.sh", "~/bin/mine",
        "python ~/mine.py", "./mine_*.sh",
    ],
)  # fmt: skip
def test_a_program_that_a_shell_may_find_is_left_to_the_shell(line):
    assert list(missing_programs(described({"env": line}))) == []


def test_a_process_elsewhere_is_none_of_its_business(case):
    case.sections["relaax-rlx-server"]["--parameter-server"] = "10.0.0.5:7000"
    assert case.check().mistakes == []


@pytest.mark.parametrize("line", ["cd x && exec relaax-learner --config y", "relaax-learner $ARGS"])
def test_a_line_whose_arguments_a_shell_makes_is_left_to_the_shell(case, line):
    case.lines["other"] = line
    assert case.check().mistakes == []


@pytest.mark.parametrize(
    "line",
    [
        "relaax-learner --config my.yaml --checkpoint-dir $HOME/ckpt",
        "cd . && relaax-learner --config my.yaml",
        "exec python -m relaax.server.learner.main --config my.yaml",
        "nice -n 5 relaax-learner --config my.yaml",
        "ssh gpu relaax-learner --config my.yaml",
    ],
)
def test_a_learner_is_not_missed_however_a_line_starts_it(case, line):
    case.lines["learner"] = line
    found = case.check()
    assert (found.mistakes, found.doubts) == ([], [])


@pytest.mark.parametrize("line", ["./run_learner.sh", "tensorboard --logdir x"])
def test_a_learner_that_a_line_may_start_which_is_not_read_is_doubtful(case, line):
    case.lines["learner"] = line
    found = case.check()
    assert found.mistakes == []
    assert found.doubts[0].startswith("no line runs relaax-learner, which this algorithm needs")


@pytest.mark.parametrize(
    ("option", "value"), [("--learner", "gpu-host:7002"), ("--replay-servers", ["gpu-host:7003"])]
)
def test_a_learner_that_may_be_elsewhere_is_doubtful(case, option, value):
    case.sections["relaax-rlx-server"] = {option: value}
    del case.lines["learner"]
    found = case.check()
    assert (found.mistakes, len(found.doubts)) == ([], 1)


def test_the_memory_of_the_replay_is_said_before_it_is_taken(case):
    case.sections["algorithm"]["replay_size"] = 1000
    (note,) = case.check().notes
    assert re.fullmatch(
        r"replay: 1,000 steps of \d+ bytes take 1 MiB of memory; [\d,]+ MiB are available", note
    )


def test_the_memory_of_each_replay_server_is_said_in_the_place_of_the_learner_s(case):
    case.sections["algorithm"]["replay_size"] = 1000
    places = ["localhost:7003", "localhost:7004"]
    case.sections["relaax-learner"]["--replay-servers"] = places
    for place in places:
        command = f"relaax-replay-server --config {case.path} --bind {place}"
        case.lines[place] = f"{command} --checkpoint-dir x"
    found = case.check()
    assert found.mistakes == []
    start, copied = "replay: 500 steps of", "their copies while they are saved"
    assert [(note.startswith(start), copied in note) for note in found.notes] == [(True, True)] * 2


def test_a_replay_for_which_the_memory_is_missing_is_a_mistake(case):
    case.sections["algorithm"]["replay_size"] = 10**13
    (mistake,) = case.check().mistakes
    assert mistake.startswith("replay_size: 10,000,000,000,000 steps of ")
    case.sections["algorithm"]["replay_size"] = 1000


def test_servers_of_other_machines_share_no_port(case):
    case.lines["a"], case.lines["b"] = (f"ssh {host} {case.lines['rlx'][5:]}" for host in "ab")
    assert case.check().mistakes == []


@pytest.mark.parametrize("flags", ["--workers many", "--no-such-flag", "--http-bind"])
def test_a_usage_error_names_the_line_and_shows_no_usage(case, flags, capsys):
    case.lines["rlx"] += f" {flags}"
    (mistake,) = case.check().mistakes
    assert mistake.startswith("rlx: ")
    assert flags.split()[0] in mistake
    assert "usage" not in mistake
    assert capsys.readouterr() == ("", "")


def test_two_sections_of_an_algorithm_are_doubtful(case, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({**case.sections, "algorithm": {**SAC, "seed": 2}}))
    case.lines["learner"] = f"exec relaax-learner --config {other}"
    (doubt,) = case.check().doubts
    assert doubt == f"the processes read different algorithm sections: {case.path}, {other}"


def test_sections_of_policies_of_different_agents_are_not_doubtful(case, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({**case.sections, "algorithm": {**SAC, "seed": 2}}))
    case.lines["rlx"] = f"exec relaax-actor --config {other} --env E-v1 --agents agents.yaml"
    assert case.check().doubts == []


def test_what_servers_found_doubtful_is_read_from_the_log_once(tmp_path):
    log = tmp_path / "log"
    line = "2026-11-27 12:00:00,000 rlx WARNING doubtful: the state has channels first"
    log.write_text(f"other\n{line}\n{line}\n")
    assert doubts_in(log) == ["the state has channels first"]
    assert doubts_in(tmp_path / "missing") == []


def test_what_was_said_before_the_last_start_is_of_another_training(tmp_path):
    for number in range(2):
        log = ProcessLog(tmp_path / "log")
        log.begin()
        log.write("rlx", datetime.now(), f"doubtful: {number}")
        log.close()
    assert doubts_in(tmp_path / "log") == ["1"]


def test_a_file_that_was_renamed_since_the_last_start_is_read_too(tmp_path):
    older = ("doubtful: 0", BEGINS, "doubtful: 1")
    (tmp_path / "log.1").write_text("\n".join(older) + "\n")
    (tmp_path / "log").write_text("doubtful: 2\n")
    assert doubts_in(tmp_path / "log") == ["1", "2"]


def test_an_environment_that_connects_where_no_rlx_server_listens_is_named(case):
    case.lines["env"] = "environments/mine --rlx-server localhost:7009"
    (mistake,) = case.check().mistakes
    assert mistake == (
        "env connects to localhost:7009 (--rlx-server), and the relaax-rlx-server of this Procfile "
        "listens at port 7001"
    )


def test_a_learner_that_saves_where_the_parameter_server_does_is_named(case):
    for program in ("relaax-parameter-server", "relaax-learner"):
        case.sections.setdefault(program, {})["--checkpoint-dir"] = "training"
    (mistake,) = case.check().mistakes
    assert mistake.startswith(
        "ps and learner both have --checkpoint-dir training: give the learner"
    )
