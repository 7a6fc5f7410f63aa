"""The command ``relaax-learner``, which wires the process together."""

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import NoReturn

import numpy as np

from relaax.algorithm_base import Learner, ParameterLink
from relaax.checkpoints import CheckpointSaver
from relaax.checkpoints.checkpoint_list import print_checkpoints
from relaax.checkpoints.checkpoint_place import wait_for_store
from relaax.configuration import (
    LearnerConfiguration,
    LearnerOptions,
    leave_at_once,
    load_learner,
    run_command,
)
from relaax.configuration.access import begin_server
from relaax.configuration.algorithm_loader import load_algorithm, make_config
from relaax.configuration.commands import LEARNER
from relaax.errors import BridgeError, CheckpointMismatch, ConfigurationError, ParameterServerAway
from relaax.net.listening import require_allowed
from relaax.parameters.training_watch import Answer, TrainingWatch, first_answer
from relaax.processes.allocator import keep_memory
from relaax.processes.periodic_tasks import Task
from relaax.processes.stop_signal import Stop, StopSignal
from relaax.replay.specs import ReplaySpec
from relaax.server.learner.builder import make_learner, make_loop, random_numbers, restore_learner
from relaax.server.learner.experience import Experience, OwnReplay, ReplayServers
from relaax.server.learner.kept_replay import kept_replay
from relaax.server.learner.lineage import connect_restored
from relaax.server.learner.loop import LearnerLoop
from relaax.server.learner.member import PopulationMember, join_population, with_order
from relaax.server.learner.shown import LearnerShown
from relaax.telemetry.live_lines import Figure, LiveLineWriter
from relaax.telemetry.metrics import Metrics

_log = logging.getLogger(__name__)

#: How long a learner that asks for values waits for a parameter server that is away before it looks
#: whether it is to stop.
SHORT_WAIT_S = 2.0


class LearnerLine:
    """Makes figures of the ``iteration`` of the learner, and of what its replay has counted.

    Where the replay is elsewhere, ``stats`` returns nothing.
    """

    def __init__(
        self,
        iteration: Callable[[], int],
        stats: Callable[[], Mapping[str, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._iteration = iteration
        self._stats = stats
        self._clock = clock
        self._began_with, self._acted_before = iteration(), stats().get("actions stored", 0.0)
        self._seen = (clock(), self._began_with)

    def figures(self) -> list[Figure]:
        """Return the figures of this moment; rates are those since the call before."""
        then, before = self._seen
        now, iteration = self._clock(), self._iteration()
        self._seen = (now, iteration)
        stats = self._stats()
        figures = [
            Figure(iteration, "updates"),
            Figure((iteration - before) / max(now - then, 1e-9), "updates/s"),
        ]
        steps = stats.get("actions stored", 0.0) - self._acted_before
        if steps > 0:
            figures.append(Figure((iteration - self._began_with) / steps, "updates per step"))
        if "capacity" in stats:
            figures.append(Figure(stats["steps"], "steps stored", of=stats["capacity"]))
        return figures


def main() -> NoReturn:
    """Run a learner, and end with its exit status."""
    leave_at_once(run_command("relaax-learner", lambda: _serve(sys.argv[1:])))


def _serve(arguments: list[str]) -> int:
    configuration = load_learner(arguments)
    options = configuration.options
    begin_server(options, "relaax-learner")
    if options.list_checkpoints:
        return print_checkpoints(options.checkpoint_dir, options.checkpoint_aws_s3, options.aws)
    placed = {} if options.replay_servers is not None else {"bind": options.bind}
    require_allowed(**placed, http_bind=options.http_bind)
    stop = StopSignal()
    os.nice(options.nice)  # before it has threads
    keep_memory()  # every batch is made of arrays of the same sizes
    with ExitStack() as resources:
        shown = LearnerShown(options, resources)
        while _learn(configuration, shown, stop):  # with a new order of its population's manager
            pass
    return 0


def _learn(configuration: LearnerConfiguration, shown: LearnerShown, stop: Stop) -> bool:
    """Learn until ``stop`` is set or the training is over; return True for a new order before."""
    options = configuration.options
    with ExitStack() as resources:
        if not wait_for_store(options.checkpoint_aws_s3, options.aws, options.give_up, stop):
            return False
        member = join_population(configuration, stop) if options.population_member else None
        if member is not None:
            resources.callback(member.close)
            configuration = with_order(configuration, member.order)
        try:
            loop, watch, experience = _loop(configuration, resources, shown, stop, member)
        except (CheckpointMismatch, ConfigurationError) as error:
            if member is None or not member.refuses(str(error), stop):
                raise
            return True
        if stop.wait(0):  # while it started: the others are ending, too
            print("stopped before it began", flush=True)
            return False
        print(f"learning from {experience.place}", flush=True)
        began_with = loop.iteration
        shown.begin(watch, {} if member is None else member.order.hyperparameters)

        def has_new_order() -> bool:
            return member is not None and member.has_new_order

        try:
            loop.run(stop, lambda: watch.is_over or watch.is_abandoned or has_new_order())
        except BridgeError as error:  # it refuses what this configuration makes
            raise ConfigurationError(str(error)) from error
        watch.require_known()
        came = experience.finish(watch.is_over)
        print(f"stopped after {_steps(loop.iteration, began_with)}; {came}", flush=True)
        return has_new_order() and not (stop.wait(0) or watch.is_over)


def _steps(iteration: int, began_with: int) -> str:
    """Return in words how many steps a learner has taken."""
    said = f"{iteration:,} steps of the learner"
    return f"{said}, {iteration - began_with:,} of them since this start" if began_with else said


def _loop(
    configuration: LearnerConfiguration,
    resources: ExitStack,
    shown: LearnerShown,
    stop: Stop,
    member: PopulationMember | None,
) -> tuple[LearnerLoop, TrainingWatch, Experience]:
    """Wire the parts together; ``resources`` will close them, and ``shown`` shows them."""
    options, section = configuration.options, configuration.algorithm
    algorithm = load_algorithm(section.directory)
    config = make_config(algorithm, section)
    algorithm.require_learner(config, LEARNER.name)
    learner = make_learner(algorithm, config, section, resources)
    _require_effect(options, learner)
    bridge = algorithm.BridgeControl().parameter_server_stub(str(options.parameter_server))
    resources.callback(bridge.close)
    if shown.runs is not None:
        bridge.copy_metrics_to(shown.runs)
    restored = restore_learner(learner, config, configuration, resources)
    if member is not None:
        published = _published(bridge, stop, options.give_up)
        restored = member.carry_out(restored, published, stop)
    saver = restored.saver
    on_score = saver.scores.add if isinstance(saver, CheckpointSaver) else None
    experience = _experience(
        options, algorithm.replay_spec(config), learner, random_numbers(section), bridge.metrics()
    )
    resources.callback(experience.close)
    bridge.lineage_at = restored.lineage.at
    connect = partial(connect_restored, learner, bridge, restored.iteration, options.start_afresh)
    _connect(learner, bridge, connect, stop, options.give_up)
    # Steps of a learner that had other parameters are of no use to this one, and not lost.
    count_lost = (lambda steps: None) if shown.was_begun else experience.count_lost
    watch = TrainingWatch(bridge, experience.steps_to_count, on_score, count_lost, options.give_up)
    resources.enter_context(closing(watch))
    tending = [experience.tend]

    def save(step: int) -> None:
        with shown.saves.saving():
            restored.save(step)

    loop = make_loop(
        restored, experience.source, bridge, options, save, lambda: [tend() for tend in tending]
    )
    line = LearnerLine(lambda: loop.iteration, experience.stats)
    tending.append(LiveLineWriter("learner", line.figures).write_if_due)
    shown.show(loop, experience, saves=restored.store is not None)
    resources.callback(shown.end)
    return loop, watch, experience


def _published(bridge: ParameterLink, stop: Stop, give_up_s: float) -> int:
    """Return the newest version that is published, by its learner's count; 0 for none.

    Also where ``stop`` is set before the parameter server answers.
    """
    bridge.wait_at_most(SHORT_WAIT_S)
    values = _answered(bridge.pull, stop, give_up_s)
    return 0 if values is None or values.info is None else values.info.iteration


def _require_effect(options: LearnerOptions, learner: Learner) -> None:
    """Raise ConfigurationError for options that mean nothing to this learner."""
    if not learner.is_replaying:
        options.require_none_of(
            ("prefetch", "prefetch_threads"),
            "this algorithm learns from what its newest parameters do: a batch is drawn after the "
            "one before was learnt from",
        )
    if learner.is_on_policy:
        options.require_none_of(
            ("publish_interval", "publish_every"),
            "this algorithm learns from what its newest parameters do: the result of each step is "
            "published at once",
        )
    if not learner.values():
        options.require_none_of(
            ("population_member",),
            "this learner shares gradients: its parameters are not in its checkpoints",
        )
        options.require_none_of(
            ("publish_interval", "publish_every"),
            "this learner shares gradients: the parameter server applies them, and nothing is "
            "published",
        )


def _connect(
    learner: Learner,
    bridge: ParameterLink,
    connect: Callable[[], None],
    stop: Stop,
    give_up_s: float,
) -> None:
    """Connect a learner to the parameter server, once that answers, unless ``stop`` is set before.

    Abandoned if it does not answer for ``give_up_s``.
    """
    if not learner.values():
        bridge.wait_at_most(SHORT_WAIT_S)  # for its steps, between which ``stop`` is looked at
    _answered(connect, stop, give_up_s)


def _answered(ask: Callable[[], Answer], stop: Stop, give_up_s: float) -> Answer | None:
    """Return the first answer of the parameter server; None if ``stop`` is set before.

    Abandoned if it does not answer for ``give_up_s``.
    """
    return first_answer(
        ask,
        "the parameter server",
        stop,
        give_up_s=give_up_s,
        pause_s=0.0,  # the bridge has waited
        waits_for=ParameterServerAway,
    )


def _experience(
    options: LearnerOptions,
    spec: ReplaySpec,
    learner: Learner,
    random: np.random.Generator,
    metrics: Metrics,
) -> Experience:
    """Return replay servers, if they are named, or else a replay in this process."""
    if options.replay_servers is None:
        return _own_replay(options, spec, learner.is_replaying, random, metrics)
    if spec.paced_rollout is not None:
        raise ConfigurationError(
            "max_staleness counts the rollouts in the learner: leave out --replay-servers, or "
            "write max_policy_lag in its place"
        )
    return ReplayServers(options.replay_servers, list(learner.inputs), spec, random, metrics)


def _own_replay(
    options: LearnerOptions,
    spec: ReplaySpec,
    is_replaying: bool,
    random: np.random.Generator,
    metrics: Metrics,
) -> OwnReplay:
    """Return a replay in this process, with what was saved of it."""
    (replay, contents), tasks = kept_replay(options, spec, is_replaying, random), []
    if contents is not None:
        tasks.append(Task(options.checkpoint_interval, contents.save_or_warn))
    if options.evict_after is not None:
        tasks.append(Task(options.evict_interval, partial(replay.evict, options.evict_after)))
    return OwnReplay(replay, spec, options.bind, metrics, tasks, contents)


if __name__ == "__main__":
    main()
