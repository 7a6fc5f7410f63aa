"""A learner that is a member of a population: it carries out the orders of its manager."""

import json
import logging
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from relaax.algorithm_base import Checkpoint
from relaax.checkpoints import BlobStore, CheckpointSaver, DirectoryStore
from relaax.checkpoints.store import read_json
from relaax.configuration import LearnerConfiguration
from relaax.configuration.population_rules import merged
from relaax.errors import BridgeError, CheckpointError, ConfigurationError, ParameterServerAway
from relaax.parameters.training_watch import first_answer
from relaax.populations.membership import Done, Order, WrongNumber
from relaax.populations.stub import MemberStub
from relaax.processes.periodic_tasks import Task, TasksThread
from relaax.processes.stop_signal import Stop
from relaax.server.learner.builder import RestoredLearner, restore
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: The file beside the checkpoints with the last order that was carried out.
FILE = "order.json"

#: How often it asks for an order, and for a checkpoint of another member that is not there yet.
_INTERVAL_S = 1.0


class PopulationMember:
    """Asks the parameter server for orders, on a thread of its own, until ``close``.

    ``order`` is the last one, by which the learner is made. Its source's checkpoint is waited for
    for ``give_up_s``.
    """

    def __init__(self, stub: MemberStub, order: Order, done: Done, give_up_s: float) -> None:
        self._stub = stub
        self._give_up_s = give_up_s
        self.order = order
        self._is_open = order.number != done.number
        self._newest = order
        self._complaint = RepeatedWarning(_log)
        self._thread = TasksThread([Task(_INTERVAL_S, self._look)], "population member")

    @property
    def has_new_order(self) -> bool:
        """Whether the learner has to be made again."""
        return self._newest.number != self.order.number

    def carry_out(self, restored: RestoredLearner, published: int, stop: Stop) -> RestoredLearner:
        """Return the learner with the parameters of its order, unless it went on with them before.

        Their version is the next one after all that were published: ``published`` is the newest.
        CheckpointMismatch where they do not fit, ConfigurationError where there are none in time.
        """
        store = restored.store
        if store is None or not self.order.number:
            return restored
        done = _done_in(store, self.order)
        if done is None and self.order.source:
            checkpoint = _newest_checkpoint(self.order, stop, self._give_up_s)
            if checkpoint is None:
                return restored
            iteration = 1 + max(restored.iteration, published)
            place = self.order.checkpoints
            restore(restored.learner, checkpoint, restored.fingerprint, place, iteration)
            restored = replace(restored, iteration=iteration)
            done = Done(self.order.number, iteration, checkpoint.version)
            if not self._is_saved(restored, store, done, stop):
                return restored
            print(
                f"version {done.version:,} has the parameters of {self.order.source}, of its "
                f"version {done.source_version:,}",
                flush=True,
            )
        if done is not None:
            self._say(done, stop)
        return restored

    def refuses(self, reason: str, stop: Stop) -> bool:
        """Say that the order cannot be carried out; return False if it has been already."""
        if not self._is_open:
            return False
        _log.error("an order of the population's manager is refused: %s", reason)
        self._say(Done(self.order.number, refused=reason), stop)
        return True

    def close(self) -> None:
        """End the thread, and the connection."""
        self._thread.close()
        self._stub.close()

    def _is_saved(
        self, restored: RestoredLearner, store: BlobStore, done: Done, stop: Stop
    ) -> bool:
        """Save what an order has made, once there is room; return False if ``stop`` is set before.

        A learner that is killed in between carries the order out again.
        """

        def save() -> bool:
            restored.save(restored.iteration)
            _store_done(store, self.order, done)
            return True

        saved = first_answer(
            save,
            "the checkpoint of an order",
            stop,
            give_up_s=float("inf"),
            pause_s=_INTERVAL_S,
            waits_for=CheckpointError,
        )
        return saved is not None

    def _say(self, done: Done, stop: Stop) -> None:
        """Tell the parameter server how the learner goes on, once that answers."""
        first_answer(
            lambda: self._note_done(done),
            "the parameter server",
            stop,
            give_up_s=float("inf"),
            pause_s=_INTERVAL_S,
            waits_for=ParameterServerAway,
        )
        self._is_open = False

    def _note_done(self, done: Done) -> None:
        try:
            self._stub.note_done(done)
        except WrongNumber as error:  # there is a newer order, which comes next
            _log.info("%s", error)

    def _look(self) -> None:
        try:
            self._newest, _ = self._stub.membership()
            self._complaint.forget()
        except BridgeError as error:
            self._complaint.say(f"no orders of the population's manager: {error}")


def join_population(configuration: LearnerConfiguration, stop: Stop) -> PopulationMember | None:
    """Return the member with the order that is there now; None if ``stop`` is set before."""
    options = configuration.options
    stub = MemberStub(str(options.parameter_server))
    found = first_answer(
        stub.membership,
        "the parameter server",
        stop,
        give_up_s=options.give_up,
        pause_s=_INTERVAL_S,
        waits_for=ParameterServerAway,
    )
    if found is None:
        stub.close()
        return None
    return PopulationMember(stub, *found, options.give_up)


def with_order(configuration: LearnerConfiguration, order: Order) -> LearnerConfiguration:
    """Return the configuration of a learner with the hyperparameters of an order."""
    section = configuration.algorithm
    parameters = merged(section.parameters, order.hyperparameters)
    return replace(configuration, algorithm=replace(section, parameters=parameters))


def _done_in(store: BlobStore, order: Order) -> Done | None:
    """Return what was done of an order with these checkpoints; None if it was not carried out."""

    def read(content: Any) -> Done | None:
        return Done(**content["done"]) if content["order"] == asdict(order) else None

    return read_json(store, FILE, read)


def _store_done(store: BlobStore, order: Order, done: Done) -> None:
    content = {"order": asdict(order), "done": asdict(done)}
    store.put(FILE, json.dumps(content, indent=1).encode())


def _newest_checkpoint(order: Order, stop: Stop, give_up_s: float) -> Checkpoint | None:
    """Return the newest checkpoint of the order's source, once there is one.

    Its owner may replace it at any time. None if ``stop`` is set before.
    ConfigurationError after ``give_up_s``.
    """
    complaint, give_up_at = RepeatedWarning(_log), time.monotonic() + give_up_s
    while not stop.wait(0):
        try:
            store = DirectoryStore(Path(order.checkpoints), is_only_read=True)
            checkpoint = CheckpointSaver(store, keep=1).restore_latest()
            why = "it has saved none yet"
        except (CheckpointError, ConfigurationError) as error:
            checkpoint, why = None, str(error)
        if checkpoint is not None:
            return checkpoint
        if time.monotonic() > give_up_at:
            raise ConfigurationError(
                f"no checkpoint of {order.source} for {give_up_s:g} seconds (--give-up): {why}"
            )
        complaint.say(f"waiting for a checkpoint of {order.source}: {why}")
        stop.wait(_INTERVAL_S)
    return None
