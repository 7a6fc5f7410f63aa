"""What must hold at the end of a soak, with its figures."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import psutil
from soak_entries import Ledger
from soak_leaks import descriptors, shared_memory, trends
from soak_ledger import ledger, rollbacks
from soak_rollbacks import Rollback, at_end
from soak_training import CHECKPOINT_INTERVAL_S, Training
from soak_usage import Check, descriptor_check, memory_check
from soak_watch import Watch

#: A checkpoint may be this late: it is written by all shards, and seen twice a second.
_LATE_S = 3.0

_CHECKPOINT_S = CHECKPOINT_INTERVAL_S + _LATE_S


def checks_of(training: Training, watch: Watch, statuses: Mapping[str, int | None]) -> list[Check]:
    """Return what is known when all has been stopped."""
    with_first = _with_the_first_shard(training, watch)
    return [
        _goes_on(watch),
        _goes_back_no_further_than_a_checkpoint(with_first),
        *_each_step_counts_once(ledger(training, watch.global_step, with_first)),
        _ends_alone_when_killed(training, statuses),
        _memory_is_flat(training),
        _keeps_no_descriptor(training),
        _says_no_traceback(training),
        *([_shows_what_was_renewed(watch)] if training.access.is_guarded else []),
        Check("no zombies", not watch.zombies, ", ".join(watch.zombies) or "0"),
    ]


def checks_after(
    directory: Path, left: Collection[psutil.Process], before: set[str]
) -> list[Check]:
    """Return what is known of the machine: ``before`` the soak its shared memory held that."""
    processes = [f"{each.pid} of {directory}" for each in left]
    memory = shared_memory() - before
    return [
        Check("no process is left", not processes, ", ".join(processes) or "0"),
        Check("no shared memory is left", not memory, ", ".join(sorted(memory)) or "0"),
    ]


def _goes_on(watch: Watch) -> Check:
    times = [each.seconds for each in watch.recoveries if each.seconds is not None]
    stuck = [each.fault for each in watch.recoveries if each.seconds is None]
    figures = f"after {len(times)} of {len(watch.recoveries)} faults"
    if times:
        figures += (
            f", within {max(times):.1f} s at most, {sum(times) / len(times):.1f} s on average"
        )
    return Check(
        "the training goes on", bool(times) and not stuck, "; not after ".join([figures, *stuck])
    )


def _with_the_first_shard(training: Training, watch: Watch) -> list[Rollback]:
    return [at_end(steps, watch.looks_at(run), _CHECKPOINT_S) for steps, run in rollbacks(training)]


def _goes_back_no_further_than_a_checkpoint(found: Sequence[Rollback]) -> Check:
    return Check(
        "the global step goes back no further than to a checkpoint",
        all(each.holds for each in found),
        f"{', '.join(f'{each.steps} of at most {each.most}' for each in found) or 'never'} steps",
    )


def _each_step_counts_once(found: Ledger) -> list[Check]:
    losses = ", ".join(f"{each.steps} {each.name}" for each in found.losses)
    sum_ = f"{found.sent} sent = {found.global_step} counted + {losses}"
    return [
        Check(
            "each step is counted, or lost with what ended",
            found.unexplained == 0 and found.on_the_way == 0,
            f"{sum_}; {found.unexplained} unexplained, {found.on_the_way} on their way",
        ),
        Check(
            "no loss is larger than what was on its way",
            all(each.holds for each in found.losses),
            ", ".join(f"{e.steps} of {e.most} {e.reason} {e.name}" for e in found.losses),
        ),
    ]


def _ends_alone_when_killed(training: Training, statuses: Mapping[str, int | None]) -> Check:
    wrong = [
        f"{each.name} ended with {status}"
        for each in training.processes
        for status in each.unexpected
    ]
    wrong += [
        f"{name} was stopped with {status}"
        for name, status in statuses.items()
        if status != 0 and name != "HAProxy"  # which ends by the signal
    ]
    runs = sum(len(each.runs) for each in training.processes)
    return Check(
        "a process ends when it is killed or stopped alone",
        not wrong,
        ", ".join(wrong) or f"{runs} runs",
    )


def _says_no_traceback(training: Training) -> Check:
    found = [
        run.log.name
        for each in training.processes
        for run in each.runs
        if "Traceback (most recent call last)" in run.text()
    ]
    return Check("no log has a traceback", not found, ", ".join(found) or "0")


def _shows_what_was_renewed(watch: Watch) -> Check:
    return Check(
        "all servers show the renewed certificate",
        not watch.outdated,
        ", ".join(watch.outdated) or "each of them",
    )


def _memory_is_flat(training: Training) -> Check:
    # The emulator of S3 holds what it was given in memory.
    processes = [each for each in training.processes if each.role != "S3 server"]
    return memory_check(trends(processes, training.sampling.settled_s))


def _keeps_no_descriptor(training: Training) -> Check:
    return descriptor_check(descriptors(training.processes, training.sampling.settled_s))
