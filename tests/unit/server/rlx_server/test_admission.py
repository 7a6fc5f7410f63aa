"""Whether there is memory for another worker."""

import os

from relaax.server.rlx_server.admission import GROWTH_S, Admission, WorkerMemory, decide, measure

FLOOR = 100


def grown(size):
    return WorkerMemory(size, GROWTH_S + 1)


def young(size):
    return WorkerMemory(size, 0.1)


def test_the_first_worker_needs_the_configured_floor():
    assert decide(100, [], FLOOR).is_admitted
    assert not decide(99, [], FLOOR).is_admitted


def test_a_worker_needs_the_mean_of_those_that_run():
    workers = [grown(10), grown(30)]
    assert decide(20, workers, FLOOR).is_admitted
    assert not decide(19, workers, FLOOR).is_admitted


def test_a_burst_cannot_pass_before_its_first_workers_have_grown():
    """Two young workers own 10 of the 100 that each will take: 180 are spoken for."""
    workers = [young(10), young(10)]
    assert not decide(279, workers, FLOOR).is_admitted
    assert decide(280, workers, FLOOR).is_admitted


def test_young_workers_do_not_pull_the_mean_down():
    assert decide(1000, [grown(200), young(0)], FLOOR).needed_bytes == 200


def test_the_reason_names_both_figures():
    decision = decide(50 * 1024**2, [grown(200 * 1024**2)], FLOOR)
    assert str(decision) == "50 MiB of memory are available and a worker needs 200 MiB"


def test_this_process_is_measured_and_an_ended_one_is_not():
    assert measure(os.getpid()).private_bytes > 1_000_000
    assert measure(2**22 - 1) is None


def test_a_machine_without_enough_memory_admits_nobody():
    assert not Admission(first_worker_mib=1e9).decide([]).is_admitted
    assert Admission(first_worker_mib=1).decide([]).is_admitted
