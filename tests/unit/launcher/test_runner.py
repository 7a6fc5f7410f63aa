"""Processes of an engine, as ``relaax-train`` runs them: output, end, and other machines."""

import queue
import signal
import threading

import pytest
from processes import wait_for

from relaax.launcher.runner import MOST_RESTARTS, GivenUp, Keys, MachineIsGone, Runner, RunRules

GONE = "gone"


class Machines:
    """A cluster of which a test says what each process does.

    A process prints lines, and ends with a status or because its machine is GONE.
    """

    def __init__(self):
        self.on_change = lambda name: None
        self.does = {}
        self.starts = {}
        self.signals = []
        #: Whether there are other machines to move to, and what a move changes.
        self.has_room = True
        self.changes = []

    def host(self, name):
        return f"10.0.0.{self.starts.get(name, 0) + 1}"

    def start(self, name, number):
        assert number == self.starts.get(name, 0)
        self.starts[name] = number + 1
        return 100 + self.starts[name]

    def output(self, name, goes_on):
        did = self.does[name].get(timeout=0.05) if not self.does[name].empty() else None
        if did == GONE:
            raise MachineIsGone("is gone")
        if isinstance(did, int):
            return [], did
        if did is None and not goes_on():
            raise GivenUp
        return ([] if did is None else [did]), None

    def signal(self, name, number):
        self.signals.append((name, number))
        if number == signal.SIGTERM and name in self.starts:
            self.does[name].put(0)

    def move(self, name, goes_on):
        while not self.has_room:
            if not goes_on():
                raise GivenUp
        for changed in self.changes:
            self.on_change(changed)


class Printed:
    """A printer that keeps what it gets."""

    def __init__(self):
        self.lines = []
        self.ended = {}
        self.decided_by = None

    def note_start(self, name, group, host):
        assert group > 100

    def note_end(self, name, status):
        self.ended[name] = status

    def note_decided_by(self, name):
        self.decided_by = name

    def make_room_for(self, names):
        assert "system" in names

    def write(self, message):
        text = message.data.decode() if isinstance(message.data, bytes) else message.data
        self.lines.append(f"{message.name}: {text.rstrip()}")


@pytest.fixture(name="machines")
def _machines():
    return Machines()


@pytest.fixture(name="printed")
def _printed():
    return Printed()


@pytest.fixture(name="run")
def _run(machines, printed, monkeypatch):
    """Runs processes, each of which does what is listed, and returns the exit status."""
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)  # pytest keeps its own

    def run(restarts=False, rules=None, **does):
        for name, what in does.items():
            machines.does[name] = queue.Queue()
            for each in what:
                machines.does[name].put(each)
        machines.starts.clear()
        turns = {name: 1 if name == "ps" else 0 for name in does}
        runner, status = Runner(turns, machines, printed, rules or RunRules(restarts)), []
        thread = threading.Thread(target=lambda: status.append(runner.run()))
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        return status[0]

    return run


def test_lines_are_printed_with_the_name_and_one_status_is_all_s(run, machines, printed):
    assert run(ps=[b"one\n", b"two\n", 3], env=[b"three\n"]) == 3
    assert printed.decided_by == "ps"
    for line in ("ps: one", "ps: two", "env: three", "system: ps started (pid=101 at 10.0.0.2)"):
        assert line in printed.lines
    assert machines.signals == [("env", signal.SIGTERM)]


def test_a_run_ends_with_a_status_of_its_own_when_its_time_is_over(run, machines, printed):
    assert run(rules=RunRules(timeout_s=0.3), ps=[], env=[]) == 124
    assert "system: the time-out of 0.3 s is over: all are stopped" in printed.lines
    assert machines.signals == [("env", signal.SIGTERM), ("ps", signal.SIGTERM)]


def test_on_option_the_others_run_on_when_one_fails_and_the_end_of_the_training_counts(
    run, machines, printed
):
    def end_last(status):
        wait_for(lambda: {"env", "rlx"} <= set(printed.ended), "the end of both")
        machines.does["ps"].put(status)

    rules = RunRules(ignores_errors=True)
    for status in (0, 4):
        printed.ended.clear()
        last = threading.Thread(target=end_last, args=(status,))
        last.start()
        assert run(rules=rules, ps=[], env=[3], rlx=[-9]) == status
        assert printed.decided_by == "ps"
        last.join()
        assert printed.ended == {"ps": status, "env": 3, "rlx": -9}
    assert machines.signals == []


def test_a_process_ends_when_all_keys_that_it_watches_are_gone_and_the_others_run_on(
    run, machines, printed
):
    keys = {
        "one": Keys(host="a"),
        "other": Keys(host="b"),
        "either": Keys(watch=("a", "b")),
        "both": Keys(host="c", watch=("b",)),
        "last": Keys(watch=("c",)),
    }

    def end_hosts():
        wait_for(lambda: len(machines.starts) == 1 + len(keys), "all to start")
        machines.does["one"].put(0)
        wait_for(lambda: "one" in printed.ended, "the end of one")
        signals.append(list(machines.signals))
        machines.does["other"].put(-9)
        wait_for(lambda: len(printed.ended) == len(keys), "the end of those that watch")
        machines.does["ps"].put(0)

    signals = []
    host = threading.Thread(target=end_hosts)
    host.start()
    rules = RunRules(ignores_errors=True, keys=keys)
    assert run(rules=rules, ps=[], **{name: [] for name in keys}) == 0
    host.join()
    assert signals == [[]]
    assert {name for name, _ in machines.signals} == {"either", "both", "last"}
    assert machines.signals[-1] == ("last", signal.SIGTERM)


def test_a_process_with_a_key_that_fails_ends_all(run, machines):
    rules = RunRules(keys={"one": Keys(host="a")})
    assert run(rules=rules, ps=[], one=[7]) == 7
    assert machines.signals == [("ps", signal.SIGTERM)]


def test_a_parameter_server_is_stopped_when_those_that_deliver_to_it_have_ended(run, machines):
    assert run(ps=[], env=[3], rlx=[]) == 3
    assert machines.signals == [("rlx", signal.SIGTERM), ("ps", signal.SIGTERM)]


def test_a_process_that_does_not_end_does_not_keep_a_later_turn_waiting(run, machines, monkeypatch):
    stop = machines.signal

    def ignored_by_rlx(name, number):
        if name == "rlx":
            machines.signals.append((name, number))
            machines.does["rlx"].put(0) if number == signal.SIGKILL else None
        else:
            stop(name, number)

    machines.signal = ignored_by_rlx
    monkeypatch.setattr("relaax.launcher.runner.TURN_S", 0.2)
    monkeypatch.setattr("relaax.launcher.runner.GRACE_S", 0.4)
    assert run(ps=[], env=[3], rlx=[]) == 3
    assert machines.signals == [
        ("rlx", signal.SIGTERM), ("ps", signal.SIGTERM), ("rlx", signal.SIGKILL),
    ]  # fmt: skip


def test_a_process_whose_machine_is_gone_starts_again_on_another_one(run, machines, printed):
    assert run(ps=[b"one\n", GONE, b"two\n", 0]) == 0
    assert machines.starts == {"ps": 2}
    assert [line for line in printed.lines if line.startswith("ps: ")] == [
        "ps: one", "ps: its machine, 10.0.0.2, is gone: it starts again", "ps: two",
    ]  # fmt: skip


def test_those_that_are_told_other_addresses_start_again(run, machines, printed):
    def start(name, number):
        number = Machines.start(machines, name, number)
        if name == "rlx":
            does = {1: ("ps", GONE), 2: ("env", 5)}[machines.starts["rlx"]]
            machines.does[does[0]].put(does[1])
        return number

    machines.changes, machines.start = ["rlx"], start
    assert run(ps=[], rlx=[], env=[]) == 5
    assert machines.starts == {"ps": 2, "rlx": 2, "env": 1}
    assert "rlx: others have moved: it starts again, with their addresses" in printed.lines


def test_nobody_waits_for_another_machine_when_all_are_to_stop(run, machines):
    machines.has_room = False
    assert run(ps=[GONE], env=[7]) == 7
    assert machines.starts["ps"] == 1


def test_a_machine_that_goes_while_all_are_to_stop_is_the_end_of_its_process(run, machines):
    machines.signal = lambda name, number: machines.does[name].put(GONE)
    assert run(ps=[1], env=[]) == 1
    assert machines.starts == {"ps": 1, "env": 1}


def test_a_process_that_was_killed_starts_again_where_it_is_if_asked_to(run, machines):
    assert run(restarts=True, ps=[137, 137, 0]) == 0
    assert machines.starts == {"ps": 3}
    assert run(restarts=True, rlx=[137] * (MOST_RESTARTS + 1)) == 137


def test_a_cluster_that_fails_ends_the_process_in_words(run, machines, printed):
    def fail(name, number):
        raise RuntimeError("no cluster")

    machines.start = fail
    assert run(ps=[]) == 1
    assert "ps: lost: RuntimeError: no cluster" in printed.lines
