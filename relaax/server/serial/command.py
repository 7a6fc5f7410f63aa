"""What ``relaax-train --serial`` does: wires a training in one process, and runs it."""

import itertools
import logging
import secrets
import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any, NoReturn

import numpy as np

from relaax.algorithm_base import ConfigBase, ParameterLink
from relaax.client.transport import connecting_by
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.configuration.commands import LEARNER, PARAMETER_SERVER, RLX_SERVER
from relaax.errors import ConfigurationError
from relaax.parameters import BridgeControl
from relaax.parameters.process.training_monitor import (
    CHECK_INTERVAL_S,
    EndOfTraining,
    TrainingMonitor,
)
from relaax.parameters.process.wiring import training_monitor
from relaax.processes.periodic_tasks import Task, begin_tasks, do_due
from relaax.replay.mixed import Sources
from relaax.replay.replay import NotReady, Replay
from relaax.replay.step_batch import StepBatch
from relaax.server.learner.builder import make_learner, make_loop, random_numbers, restore_learner
from relaax.server.learner.kept_replay import kept_replay
from relaax.server.learner.loop import LearnerLoop
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.memory_worker import MemoryWorker, settings_in_memory
from relaax.server.rlx_server.worker.process import agents_of
from relaax.server.serial.memory_bridge import MemoryBridge
from relaax.server.serial.processes import Processes
from relaax.telemetry.logs import start_logging
from relaax.telemetry.operators import OperatorPort

_log = logging.getLogger(__name__)


class SerialLearner:
    """An ``ExperienceSink`` that stores steps in ``replay``, counts them, and learns from them.

    After each delivery the learner takes as many steps as the replay lets it, or one where nothing
    but the learner's own speed limits it: ``has_ratio`` says which.
    """

    def __init__(
        self, loop: LearnerLoop, replay: Replay, bridge: ParameterLink, has_ratio: bool
    ) -> None:
        self._loop = loop
        self._replay = replay
        self._bridge = bridge
        self._has_ratio = has_ratio
        self._counted = replay.actions
        #: By slot: the number of the step that comes next.
        self._next: dict[int, int] = {}
        #: Steps of one slot each that have not been stored.
        self._waiting: deque[tuple[int, StepBatch]] = deque()
        #: The replay's name for the one that writes: what it has restored was written by others.
        self._name = f"this process, {secrets.token_hex(8)}"
        mistakes = replay.open_writer(self._name, replay.schema)
        if mistakes:
            raise ConfigurationError("; ".join(mistakes))
        loop.begin()

    def warm_up(self) -> None:
        """Do nothing."""

    def put(self, steps: StepBatch) -> None:
        """Store steps, and learn.

        What the tables do not take yet waits, in its order, until they have been drawn from.
        """
        for slot in np.unique(steps.slots).tolist():
            self._waiting.append((slot, steps.chosen(steps.slots == slot)))
        self._store()
        limit = None if self._has_ratio else 1
        for _ in itertools.islice(itertools.count(), limit):
            if not self._loop.take_step():
                break
            self._store()

    def close(self) -> None:
        """Do nothing: who made the learner saves it."""

    def _store(self) -> None:
        """Store what waits, as far as there is room, and count it."""
        while self._waiting:
            slot, steps = self._waiting[0]
            rows = {name: steps.columns[name] for name in self._replay.schema.columns}
            first = self._next.get(slot, 0)
            try:
                self._next[slot] = self._replay.append(self._name, slot, first, rows, steps.flags)
            except NotReady:
                if not self._loop.take_step():  # which also lets go of what was drawn before
                    break
            else:
                self._waiting.popleft()
        self._bridge.add(self._replay.actions - self._counted)
        self._counted = self._replay.actions


class SerialTraining:
    """Drives a ``TrainingMonitor`` without a thread.

    The training is over, too, after ``steps`` steps from now on, if given; ``global_t`` counts
    them.
    """

    def __init__(
        self, monitor: TrainingMonitor, global_t: Callable[[], int], steps: int | None
    ) -> None:
        self._monitor = monitor
        self._global_t = global_t
        self._last_t = None if steps is None else global_t() + steps
        self._check_at = 0.0
        self._end: EndOfTraining | None = None
        monitor.begin()

    def is_over(self) -> bool:
        """Look, if it is time, and return whether nothing more is to be learnt."""
        if self._end is None and self._last_t is not None and self._global_t() >= self._last_t:
            self._end = EndOfTraining.ASKED_STEPS
        now = time.monotonic()
        if self._end is None and now >= self._check_at:
            self._check_at = now + CHECK_INTERVAL_S
            self._end = self._monitor.check()
        return self._end is not None

    def finish(self, otherwise: EndOfTraining) -> EndOfTraining:
        """Save, and say why the training has ended: ``otherwise``, where no goal was reached."""
        end = self._end or otherwise
        self._monitor.finish(end)
        return end


def run_serial(processes: Processes, steps: int | None) -> int:
    """Train in this process, until the environment's program ends.

    ``steps`` ends it after so many steps. Returns the exit status: that of the environment's
    program, or 130 after SIGINT. Exceptions of the environment's or the algorithm's own code
    propagate, when the training has been saved. ConfigurationError for what cannot run so.
    """
    print(f"in this process: {', '.join(processes.servers)} and {processes.line}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as resources:
        training, worker = _wired(processes, steps, resources)
        end = EndOfTraining.PROGRAM
        try:
            with connecting_by(worker):
                status = processes.environment.run()
        except KeyboardInterrupt:
            end, status = EndOfTraining.SIGNAL, 128 + signal.SIGINT
        finally:
            worker.close()
            reached = training.finish(end)
    return 0 if reached in (EndOfTraining.STEPS, EndOfTraining.RETURN) else status


def _wired(
    processes: Processes, steps: int | None, resources: ExitStack
) -> tuple[SerialTraining, MemoryWorker]:
    """Return the two parts that the environment's program drives; ``resources`` own the others."""
    of_server: Any = processes.servers[PARAMETER_SERVER.name]
    of_worker = processes.servers[RLX_SERVER.name]
    if of_server.algorithm != of_worker.algorithm:
        raise ConfigurationError("--serial: the two servers are to have the same YAML file")
    options = of_server.options
    if options.shards is not None or options.shard is not None or options.replica_of is not None:
        raise ConfigurationError(
            "--serial: one process has one parameter server: leave --shard, --shards and "
            "--replica-of out"
        )
    if of_worker.options.inference_servers is not None:
        raise ConfigurationError(
            "--serial: inference servers are processes of their own; in one process the worker has "
            "the policy: leave --inference-servers out"
        )
    start_logging(options.log_level, options.log_file, "relaax-train")
    section = of_server.algorithm
    algorithm = load_algorithm(section.directory)
    config = make_config(algorithm, section)
    if algorithm.BridgeControl is not BridgeControl:
        _log.warning("the algorithm's own bridge is not used: all is in one process")
    bridges: list[MemoryBridge] = []

    def listen(service: ParameterLink) -> MemoryBridge:
        bridges.append(MemoryBridge(service))
        return bridges[0]

    operators = resources.enter_context(closing(OperatorPort(None)))
    monitor = training_monitor(of_server, resources, operators, listen)
    bridge = bridges[0]
    training = SerialTraining(monitor, lambda: bridge.add(0), steps)
    algorithm.prepare_to_fork()
    settings = settings_in_memory(
        algorithm,
        config,
        max_frame_bytes=of_worker.options.max_frame_bytes,
        max_environments=of_worker.options.max_environments,
        algorithm_name=section.directory.name,
    )
    make_sink: Callable[[], Any] = _no_learner
    if algorithm.has_learner(config):
        sink = _learner(processes, algorithm, config, bridge, resources, operators)
        make_sink = lambda: sink  # noqa: E731 - the learner is older than the worker

    def make_agents() -> Agents:
        number = of_worker.options.seed or 0
        return agents_of(settings, bridge, number, make_sink, is_shared=False)

    return training, MemoryWorker(settings, make_agents, training.is_over)


def _learner(
    processes: Processes,
    algorithm: Algorithm,
    config: ConfigBase,
    bridge: MemoryBridge,
    resources: ExitStack,
    operators: OperatorPort,
) -> SerialLearner:
    """Return the learner, which saves at the end."""
    if LEARNER.name not in processes.servers:
        raise ConfigurationError(f"--serial: this algorithm needs a line with {LEARNER.name}")
    configuration = processes.servers[LEARNER.name]
    options, section = configuration.options, configuration.algorithm
    if options.replay_servers is not None:
        raise ConfigurationError(
            "--serial: replay servers are processes of their own; in one process the learner has "
            "the replay: leave --replay-servers out"
        )
    learner = make_learner(algorithm, config, section, resources)
    if not learner.values():
        raise ConfigurationError(
            "--serial: several learners share gradients here: leave 'learners' out of the "
            "algorithm section"
        )
    restored = restore_learner(learner, config, configuration, resources)
    spec = algorithm.replay_spec(config)
    random = random_numbers(section)
    (replay, contents), tasks = kept_replay(options, spec, learner.is_replaying, random), []
    if contents is not None:
        resources.callback(contents.save)
        tasks.append(Task(options.checkpoint_interval, contents.save_or_warn))
        begin_tasks(tasks)
    bridge.lineage_at = restored.lineage.at
    source = Sources(spec, dict.fromkeys(spec.own_tables, replay))
    loop = make_loop(restored, source, bridge, options, restored.save, lambda: do_due(tasks))
    drawn = {name for table in learner.inputs for name in spec.parts(table)}
    has_ratio = any(spec.own_tables[name].limiter.samples_per_insert is not None for name in drawn)
    sink = SerialLearner(loop, replay, bridge, has_ratio or learner.is_on_policy)
    resources.callback(loop.finish)
    return sink


def _no_learner() -> NoReturn:
    raise AssertionError("this algorithm learns in its worker")
