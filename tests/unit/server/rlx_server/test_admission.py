"""Whether there is memory for another connection."""

import os
from types import SimpleNamespace

import psutil
import pytest

from relaax.server.rlx_server import admission
from relaax.server.rlx_server.admission import (
    GROWTH_S,
    LEAST_SHARE_BYTES,
    MEMORY_IS_FRESH_S,
    MIB,
    ProcessMemory,
    ShareAdmission,
    Sharing,
    WorkerAdmission,
    WorkerMemory,
    decide,
    decide_share,
    measure,
)

FLOOR = 100


def grown(size):
    return WorkerMemory(size, GROWTH_S + 1)


def young(size):
    return WorkerMemory(size, 0.1)


class TestAWorkerForEachConnection:
    def test_the_first_worker_needs_the_configured_floor(self):
        assert decide(100, [], FLOOR).is_admitted
        assert not decide(99, [], FLOOR).is_admitted

    def test_a_worker_needs_the_mean_memory_of_running_ones(self):
        workers = [grown(10), grown(30)]
        assert decide(20, workers, FLOOR).is_admitted
        assert not decide(19, workers, FLOOR).is_admitted

    def test_a_burst_cannot_pass_before_its_first_workers_have_grown(self):
        """Two young workers own 10 of the 100 that each will take: 180 are spoken for."""
        workers = [young(10), young(10)]
        assert not decide(279, workers, FLOOR).is_admitted
        assert decide(280, workers, FLOOR).is_admitted

    def test_young_workers_do_not_pull_the_mean_down(self):
        assert decide(1000, [grown(200), young(0)], FLOOR).needed_bytes == 200

    def test_a_machine_without_enough_memory_admits_no_connection(self):
        assert not WorkerAdmission(first_worker_mib=1e9).decide([]).is_admitted
        assert WorkerAdmission(first_worker_mib=1).decide([]).is_admitted

    def test_the_workers_of_this_machine_are_measured(self):
        needed = WorkerAdmission(first_worker_mib=1).decide([os.getpid(), 2**22 - 1]).needed_bytes
        age_s = measure(os.getpid()).age_s
        assert needed > MIB if age_s > GROWTH_S + 1 else needed >= MIB


class TestConnectionsThatShareWorkers:
    def test_another_environment_needs_the_memory_of_one(self):
        assert decide_share(10 * MIB, 10 * MIB, 0).is_admitted
        decision = decide_share(10 * MIB - 1, 10 * MIB, 0)
        assert not decision.is_admitted
        assert decision.needed_bytes == 10 * MIB

    def test_the_growth_of_young_environments_is_held_back(self):
        """Three may take 10 MiB each, and so does the next: 40."""
        assert decide_share(40 * MIB, 10 * MIB, 3).is_admitted
        decision = decide_share(40 * MIB - 1, 10 * MIB, 3)
        assert not decision.is_admitted
        assert decision.available_bytes == 10 * MIB - 1


class Machine:
    """A machine whose memory, and the time, a test sets."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        self.available = 1000 * MIB
        self.private = {}
        monkeypatch.setattr(
            admission.psutil, "virtual_memory", lambda: SimpleNamespace(available=self.available)
        )
        self.admission = ShareAdmission(1, clock=lambda: self.now, memory_of=self.memory_of)

    def memory_of(self, pid):
        size = self.private.get(pid)
        return None if size is None else WorkerMemory(size, 1000.0)

    def decide(self, **environments):
        """Decide beside workers that serve so many environments: ``w1=3`` is of pid 1."""
        workers = [Sharing(int(name[1:]), count) for name, count in environments.items()]
        return self.admission.decide(workers)


class TestWhatIsMeasuredOfSharedWorkers:
    @pytest.fixture(name="machine")
    def _machine(self, monkeypatch):
        return Machine(monkeypatch)

    def test_the_first_connections_cost_the_configured_floor(self, machine):
        machine.private = {1: 500 * MIB}
        assert machine.decide(w1=0).needed_bytes == MIB
        machine.private = {1: 900 * MIB}
        decision = machine.decide(w1=5)
        assert (decision.needed_bytes, decision.available_bytes) == (MIB, 995 * MIB)

    def test_memory_of_a_worker_without_environments_is_not_counted(self, machine):
        machine.private = {1: 500 * MIB, 2: 300 * MIB}
        machine.decide(w1=0, w2=0)
        machine.private = {1: 540 * MIB, 2: 320 * MIB}
        machine.decide(w1=4, w2=2)
        machine.now += GROWTH_S
        decision = machine.decide(w1=4, w2=2)
        assert (decision.needed_bytes, decision.available_bytes) == (10 * MIB, 1000 * MIB)

    def test_a_connection_of_many_environments_holds_back_as_many(self, machine):
        machine.private = {1: 500 * MIB}
        machine.decide(w1=0)
        assert machine.decide(w1=16).available_bytes == (1000 - 16) * MIB

    def test_a_cost_that_is_known_is_kept_while_many_are_young(self, machine):
        machine.private = {1: 500 * MIB}
        machine.decide(w1=0)
        machine.private = {1: 540 * MIB}
        machine.decide(w1=4)
        machine.now += GROWTH_S
        assert machine.decide(w1=4).needed_bytes == 10 * MIB
        decision = machine.decide(w1=24)
        assert (decision.needed_bytes, decision.available_bytes) == (10 * MIB, 800 * MIB)

    def test_an_environment_is_not_believed_to_cost_nothing(self, machine):
        machine.private = {1: 500 * MIB}
        machine.decide(w1=0)
        machine.decide(w1=1000)
        machine.now += GROWTH_S
        assert machine.decide(w1=1000).needed_bytes == LEAST_SHARE_BYTES

    def test_a_worker_that_is_started_again_is_measured_again(self, machine):
        machine.private = {1: 500 * MIB}
        machine.decide(w1=0)
        machine.admission.forget(1)
        machine.private = {1: 100 * MIB}
        machine.decide(w1=2)
        machine.private = {1: 130 * MIB}
        machine.now += GROWTH_S
        assert machine.decide(w1=3 - 1).needed_bytes == 15 * MIB

    def test_environments_that_have_gone_hold_nothing_back(self, machine):
        machine.private = {1: 500 * MIB}
        machine.decide(w1=10)
        assert machine.decide(w1=0).available_bytes == 1000 * MIB

    def test_a_worker_that_has_just_ended_is_left_out(self, machine):
        decision = machine.decide(w1=0)
        assert decision.is_admitted
        assert decision.needed_bytes == MIB


class TestMeasuring:
    def test_this_process_is_measured_and_an_ended_one_is_not(self):
        assert measure(os.getpid()).private_bytes > 1_000_000
        assert measure(2**22 - 1) is None

    def test_a_figure_is_used_again_while_it_is_fresh(self, monkeypatch):
        now, measured = [0.0], []
        monkeypatch.setattr(admission.time, "monotonic", lambda: now[0])

        def count(pid):
            measured.append(pid)
            return None if pid == 2 else grown(10)

        monkeypatch.setattr(admission, "measure", count)
        memory = ProcessMemory()
        for now[0] in (100.0, 100.5, 100 + MEMORY_IS_FRESH_S):
            assert memory.of(1) == grown(10)
            assert memory.of(2) is None
        assert measured == [1, 2, 2, 1, 2]

    def test_a_process_that_may_not_be_looked_at_is_not_measured(self, monkeypatch):
        def refuse(pid):
            raise psutil.AccessDenied(pid)

        monkeypatch.setattr(admission.psutil, "Process", refuse)
        assert measure(1) is None


@pytest.mark.parametrize(
    ("needed", "shown"), [(200 * MIB, "200"), (10 * MIB, "10"), (MIB // 16, "0.062")]
)
def test_the_reason_names_both_figures(needed, shown):
    decision = decide(50 * MIB, [grown(needed)], FLOOR)
    expected = f"50 MiB of memory are available and a connection needs {shown} MiB"
    assert str(decision) == expected
