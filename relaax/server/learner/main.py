"""The command ``relaax-learner``, which wires the process together."""

import secrets
import sys
import time
from contextlib import ExitStack, closing

import numpy as np

from relaax.algorithm_base import Checkpoint, LearnerBase, Saver
from relaax.algorithm_base.checkpoint import require_same_fingerprint, require_same_shapes
from relaax.allocator import keep_memory
from relaax.errors import ConfigurationError
from relaax.interval_metrics import IntervalMetrics
from relaax.live_lines import LiveLineWriter
from relaax.replay.replay import Replay
from relaax.server.common.algorithm_loader import load_algorithm, make_config
from relaax.server.common.checkpoint_place import saver_of, store_of
from relaax.server.common.configuration import (
    LearnerConfiguration,
    leave_undisturbed,
    load_learner,
    run_command,
)
from relaax.server.common.logs import start_logging
from relaax.server.common.replay_metrics import ReplayMetrics
from relaax.server.common.saver import CheckpointSaver
from relaax.server.common.stop_signal import StopSignal
from relaax.server.learner.learner_line import LearnerLine
from relaax.server.learner.loop import LearnerLoop
from relaax.server.learner.publishing import PublishClock, PublishRule
from relaax.server.learner.replay_port import ReplayPort
from relaax.server.learner.training_watch import TrainingWatch

#: How long steps are still taken, and dropped, when learning has ended: workers end meanwhile.
LINGER_S = 1.5


def main() -> int:
    """Run a learner and return the exit status."""
    status = run_command("relaax-learner", lambda: _serve(sys.argv[1:]))
    leave_undisturbed()
    return status


def _serve(arguments: list[str]) -> int:
    configuration = load_learner(arguments)
    options = configuration.options
    start_logging(options.log_level, options.log_file, "relaax-learner")
    stop = StopSignal()
    keep_memory()  # every batch is made of arrays of the same sizes
    with ExitStack() as resources:
        loop, watch, replay = _loop(configuration, resources)
        print(f"learning from what is delivered at {configuration.options.bind}", flush=True)
        loop.run(stop, lambda: watch.is_over)
        replay.end()
        time.sleep(LINGER_S)
        stored = int(replay.stats()["steps stored"])
        print(
            f"stopped after {loop.iteration:,} steps of the learner; {stored:,} steps of "
            "environments were delivered",
            flush=True,
        )
    return 0


def _loop(
    configuration: LearnerConfiguration, resources: ExitStack
) -> tuple[LearnerLoop, TrainingWatch, Replay]:
    """Wire the parts together; ``resources`` will close them."""
    options, section = configuration.options, configuration.algorithm
    algorithm = load_algorithm(section.directory)
    if not algorithm.has_learner:
        raise ConfigurationError(
            f"algorithm {section.directory} has no learner: its workers learn, and "
            "relaax-learner is not needed"
        )
    config = make_config(algorithm, section)
    seed = section.parameters.get("seed")
    learner = algorithm.make_learner(config, seed)
    resources.callback(learner.close)
    store = store_of(options.checkpoint_dir, options.checkpoint_aws_s3, options.aws_keys)
    saver = saver_of(store, options.checkpoints_to_keep, options.keep_best, options.restore)
    on_score = None
    if isinstance(saver, CheckpointSaver):
        resources.callback(saver.close)
        on_score = saver.scores.add
    fingerprint = {"learner of": section.directory.name}
    iteration = _restore(learner, saver, fingerprint)
    random = np.random.default_rng(secrets.randbits(64) if seed is None else [seed, 1])
    replay = algorithm.replay_spec(config).make(random, options.lease)
    bridge = algorithm.BridgeControl().parameter_server_stub(str(options.parameter_server))
    resources.callback(bridge.close)
    try:
        resources.enter_context(closing(ReplayPort(options.bind, replay)))
    except OSError as error:
        raise ConfigurationError(f"--bind: {error}") from error
    learner.connected(bridge)
    watch = resources.enter_context(
        closing(TrainingWatch(bridge, lambda: replay.actions, on_score))
    )
    tending = [replay.reclaim, ReplayMetrics(replay.stats, bridge.metrics()).store]
    loop = LearnerLoop(
        learner,
        replay,
        bridge,
        PublishClock(PublishRule(options.publish_interval, options.publish_every)),
        IntervalMetrics(bridge.metrics()),
        lambda step: saver.save(Checkpoint(learner.state(), step, step, fingerprint)),
        options.checkpoint_interval,
        first_iteration=iteration,
        depth=options.prefetch,
        tend=lambda: [tend() for tend in tending],
    )
    line = LearnerLine(lambda: loop.iteration, replay.stats)
    tending.append(LiveLineWriter("learner", line.figures).write_if_due)
    return loop, watch, replay


def _restore(learner: LearnerBase, saver: Saver, fingerprint: dict[str, str]) -> int:
    """Restore the latest checkpoint, if any; return its count of steps."""
    checkpoint = saver.restore_latest()
    if checkpoint is None:
        return 0
    require_same_fingerprint(checkpoint.fingerprint, fingerprint, saver.location())
    require_same_shapes(checkpoint, learner.state())
    learner.restore(checkpoint.tensors)
    print(f"restored step {checkpoint.version:,} from {saver.location()}", flush=True)
    return checkpoint.version


if __name__ == "__main__":
    sys.exit(main())
