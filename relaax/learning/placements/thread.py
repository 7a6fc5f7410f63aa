"""Learning beside acting: a thread of its own, and a short queue."""

import logging
import threading
from collections import deque
from time import monotonic

from relaax.algorithm_base import MetricsSink
from relaax.learning.rollouts import ROLLOUTS, RolloutBatch
from relaax.parameters.driver import Driver

_log = logging.getLogger(__name__)

#: How long ``close`` waits for the update that is being made.
CLOSE_DEADLINE_S = 2.0

#: How long one ``put`` waits for the learner, before it drops rollouts.
FULL_QUEUE_DEADLINE_S = 5.0


class OnThread:
    """An ``ExperienceSink`` that learns on a thread of its own, from all that waits at once.

    When rollouts come faster than they are learnt from, ``put`` waits until less is queued than one
    update takes, so that every rollout is learnt from, by a policy that is not much newer, and in
    the order of arrival. If it ``drops`` rollouts, ``put`` never waits; as many rollouts are queued
    as four updates take, the newest are learnt from first, and older ones are dropped and counted.

    One ``put`` waits for ``FULL_QUEUE_DEADLINE_S`` at most, for all updates together. After that,
    while the parameter server is away for instance, the learner is not waited for until it takes
    rollouts again; meanwhile those beyond four updates are dropped, the oldest first.
    Steps of dropped rollouts count in the global step like all others, unless the parameter server
    was away meanwhile. An error ends the thread and is raised by the next ``put``, for its caller
    to log; ``close`` logs one that has not been raised. Waiting is for ``changed``.
    """

    def __init__(
        self,
        driver: Driver,
        metrics: MetricsSink,
        rollouts_per_update: int,
        drops: bool = False,
        changed: threading.Condition | None = None,
    ) -> None:
        self._driver = driver
        self._metrics = metrics
        self._at_once = rollouts_per_update
        self._drops = drops
        self._most_waiting = 4 * rollouts_per_update
        self._hangs = False
        self._queue: deque[RolloutBatch] = deque()
        self._waiting = 0
        self._dropped = 0
        self._steps_dropped = 0
        self._error: Exception | None = None
        self._is_raised = False
        self._changed = changed or threading.Condition()
        self._closes = False
        self._thread = threading.Thread(target=self._run, name="learner", daemon=True)
        self._thread.start()

    def warm_up(self) -> None:
        """Compile the updates: beside acting, that would take its time from it."""
        self._driver.learner.prepare_updates(self._at_once)

    def put(self, rollouts: RolloutBatch) -> None:
        """Queue ``rollouts``, and wait as said above; raise the error that ended the thread."""
        with self._changed:
            self._queue.extend(rollouts.pieces(self._at_once))
            self._waiting += rollouts.count
            self._changed.notify_all()
            if not self._drops:
                self._wait_for_the_learner()
            if self._error is not None:
                self._is_raised = True
                raise self._error
            while self._queue and self._waiting - self._queue[0].count > self._most_waiting:
                self._drop(self._queue.popleft())

    def close(self) -> None:
        """End the thread, without learning what still waits."""
        self._driver.stop()
        with self._changed:
            self._closes = True
            self._changed.notify_all()
        self._thread.join(CLOSE_DEADLINE_S)
        if self._thread.is_alive():
            _log.warning("the last update did not end within %g s", CLOSE_DEADLINE_S)
        else:
            self._driver.close()
        if self._error is not None and not self._is_raised:
            _log.error("the learner failed", exc_info=self._error)

    def _wait_for_the_learner(self) -> None:
        """Wait while a whole update is queued, up to the deadline."""
        deadline = monotonic() + FULL_QUEUE_DEADLINE_S
        while self._waiting >= self._at_once and not self._hangs and self._error is None:
            left = deadline - monotonic()
            self._hangs = left <= 0 or not self._changed.wait(left)

    def _drop(self, rollouts: RolloutBatch) -> None:
        self._waiting -= rollouts.count
        self._dropped += rollouts.count
        self._steps_dropped += rollouts.steps

    def _run(self) -> None:
        try:
            while (work := self._next()) is not None:
                rollouts, steps_dropped = work
                restarts = self._driver.restarts
                steps = rollouts.steps + steps_dropped
                self._driver.learn({ROLLOUTS: rollouts}, steps, rollouts.versions)
                if self._driver.restarts != restarts:
                    self._forget_dropped_steps()
        except Exception as error:  # raised where it can be acted on: by the next put
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _forget_dropped_steps(self) -> None:
        """Do not count what was dropped while the parameter server was away.

        It goes on from its last checkpoint, and these steps were never learnt from.
        """
        with self._changed:
            self._steps_dropped = 0

    def _next(self) -> tuple[RolloutBatch, int] | None:
        """Wait for rollouts; return those that one update takes, and how many steps were dropped.

        Where rollouts are dropped, the newest are taken: a queue in the order of arrival would be
        full of what older policies have done. Else the oldest are, so that all are learnt from.
        None when closed.
        """
        with self._changed:
            while not self._queue and not self._closes:
                self._changed.wait()
            if self._closes:
                return None
            taken = self._take()
            self._waiting -= sum(each.count for each in taken)
            self._hangs = False
            self._changed.notify_all()
            dropped, self._dropped = self._dropped, 0
            steps_dropped, self._steps_dropped = self._steps_dropped, 0
        if dropped:
            self._metrics.scalar("learner/rollouts dropped", dropped)
        return RolloutBatch.concatenated(taken), steps_dropped

    def _take(self) -> list[RolloutBatch]:
        """Take what one update learns from out of the queue, which is not empty.

        It has observations of one kind.
        """
        end, take = (-1, self._queue.pop) if self._drops else (0, self._queue.popleft)
        taken = [take()]
        count, kind = taken[0].count, taken[0].kind
        while (
            self._queue
            and count + self._queue[end].count <= self._at_once
            and self._queue[end].kind == kind
        ):
            taken.append(take())
            count += taken[-1].count
        return taken
