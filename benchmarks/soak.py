"""A soak: a training of real processes, of which one after the other fails.

    python benchmarks/soak.py --seconds 600 --seed 1

Every few seconds a client, a worker, an actor, an RLX server, a shard of the parameter server, a
replay server, the learner, the S3 server or HAProxy is killed, stopped for some seconds, or cut
off: its connections are refused, nothing passes them, or one byte a second. A process that has
ended is started again. The schedule is drawn of the seed, and printed. With ``--guarded`` all speak
TLS and show tokens, and these and the certificates are renewed after half of the time.

At the end clients and actors stop, and what must hold is printed with its figures: that the
training went on after each fault; that the global step went back with the first shard alone, and
not beyond a checkpoint; that each step of theirs is counted, or lost where something ended; that no
process, descriptor, shared memory or zombie is left, and that memory is flat. The exit status is 1
if any of these does not hold.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from processes import end_on_sigterm
from report import parser_of
from servers import temporary_directory
from soak_access import Access, GuardedAccess
from soak_checks import checks_after, checks_of
from soak_faults import Striker
from soak_leaks import shared_memory
from soak_links import Links
from soak_processes import Supervised, left_over
from soak_schedule import Fault, schedule
from soak_training import Training
from soak_usage import Sampling
from soak_watch import Watch

#: Of the emulator of S3, which takes any.
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "soak",
    "AWS_DEFAULT_REGION": "us-east-1",
}

START_DEADLINE_S = 180.0

#: After a fault, the training must go on within so long.
RECOVERY_DEADLINE_S = 120.0

QUIET_DEADLINE_S = 60.0

_TICK_S = 0.2


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    os.environ.update(KEYS)
    print(f"seed {arguments.seed}", flush=True)
    if arguments.directory is not None:
        arguments.directory.mkdir(parents=True, exist_ok=True)
        sys.exit(soak(arguments, arguments.directory.resolve()))
    with temporary_directory() as name:
        sys.exit(soak(arguments, Path(name)))


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="default %(default)g")
    parser.add_argument("--seed", type=int, default=1, help="of the schedule (default 1)")
    parser.add_argument("--roles", nargs="+", metavar="ROLE", help="which fail (default: all)")
    parser.add_argument("--at-once", type=int, default=1, help="faults at a time (default 1)")
    parser.add_argument(
        "--guarded",
        action="store_true",
        help="with TLS and tokens, which are renewed after half of the time",
    )
    parser.add_argument("--directory", type=Path, help="where logs are kept (default: nowhere)")
    return parser.parse_args()


def soak(arguments: argparse.Namespace, directory: Path) -> int:
    """Run it, and return the exit status."""
    before = shared_memory()
    links = Links()
    access = GuardedAccess(directory / "secrets") if arguments.guarded else Access()
    training = Training(directory, links, Sampling.of(arguments.seconds), access)
    course = Course(training)
    try:
        course.start()
        faults = schedule(arguments.seed)
        if arguments.roles is not None:
            faults = (fault for fault in faults if fault.role in arguments.roles)
        course.suffer(faults, arguments.seconds, arguments.at_once)
        statuses = course.end()
        checks = checks_of(training, course.watch, statuses)
        checks += checks_after(directory, left_over(directory), before)
    finally:
        for process in left_over(directory):
            process.kill()
        links.close()
    for check in checks:
        print(f"{'holds' if check.holds else 'FAILS'}  {check.name}: {check.figures}", flush=True)
    return 0 if all(check.holds for check in checks) else 1


class Course:
    """The training from its start to its end."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self.watch = Watch(training)
        self._striker = Striker(training)
        self._began_at = time.monotonic()

    def start(self) -> None:
        """Start all, and wait until all clients play."""
        for group in self._training.in_order_of_start():
            for process in group:
                process.start()
            self._wait_for(partial(_are_ready, group), "the start", START_DEADLINE_S)
        self._wait_for(self.watch.goes_on_since(self.watch.now()), "steps", START_DEADLINE_S)
        for process in self._training.processes:
            process.note_ready()  # all play: what they did until now belongs to their start
        self._began_at = time.monotonic()
        print(f"all {len(self._training.processes)} processes run", flush=True)

    def suffer(self, faults: Iterator[Fault], seconds: float, at_once: int) -> None:
        """Let faults come, so many ``at_once``, until ``seconds`` are over."""
        for until in (seconds / 2, seconds):
            while self._elapsed() < until:
                self._suffer(list(islice(faults, at_once)))
            if until < seconds and self._training.access.is_guarded:
                self._training.access.renew()
                print(f"{self._elapsed():6.1f} s  certificates and tokens are renewed", flush=True)

    def end(self) -> dict[str, int | None]:
        """End clients and actors, and all else when nothing is on its way; return exit statuses."""
        statuses = self._stopped("client") | self._stopped("actor")
        self._wait_for(self.watch.is_quiet, "quiet", QUIET_DEADLINE_S, must=False)
        self._wait_for(self.watch.note_end, "the global step", QUIET_DEADLINE_S)
        for role in ("HAProxy", "RLX server", "learner", "replay", "shard", "S3 server"):
            statuses |= self._stopped(role)
        return statuses

    def _stopped(self, role: str) -> dict[str, int | None]:
        """Stop all processes of a role, and start none of them again."""
        members = self._training.of(role)
        for each in members:
            each.ask_to_end()
        return {each.name: each.stop() for each in members}

    def _suffer(self, faults: Sequence[Fault]) -> None:
        strikes = [self._striker.strike(fault) for fault in faults]
        words = " and ".join(strike.words for strike in strikes)
        print(f"{self._elapsed():6.1f} s  {words}", flush=True)
        self._wait(max(strike.seconds for strike in strikes))
        for strike in strikes:
            strike.heal()
        healed_at, mark = time.monotonic(), self.watch.now()
        goes_on = self.watch.goes_on_since(mark)
        has_recovered = self._wait_for(goes_on, "recovery", RECOVERY_DEADLINE_S, must=False)
        self.watch.note_recovery(words, time.monotonic() - healed_at, has_recovered)
        self._wait(faults[0].pause_s)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self._wait_for(lambda: time.monotonic() >= until, "the time", seconds + 60)

    def _wait_for(
        self, condition: Callable[[], bool], what: str, deadline_s: float, must: bool = True
    ) -> bool:
        """Look after all until ``condition`` holds; return whether it does."""
        deadline = time.monotonic() + deadline_s
        while True:
            self._training.look_after()
            self.watch.look()
            if condition():
                return True
            if time.monotonic() > deadline:
                if must:
                    raise RuntimeError(f"{what} did not come within {deadline_s:g} s")
                return False
            time.sleep(_TICK_S)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began_at


def _are_ready(processes: Sequence[Supervised]) -> bool:
    return all(each.is_ready for each in processes)


if __name__ == "__main__":
    main()
