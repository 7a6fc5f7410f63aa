"""A learner in one process with its workers draws from all tables of its specification."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from learner_parts import parameter_service
from replay_cases import SCHEMA, steps

from relaax.algorithm_base import DEFAULT, Input, Learner, Step
from relaax.configuration import AlgorithmSection, LearnerOptions
from relaax.configuration.load import Configuration
from relaax.replay.limiter import Limiter
from relaax.replay.specs import MixedSpec, ReplaySpec, TableSpec
from relaax.replay.step_batch import StepBatch
from relaax.replay.views import Transitions
from relaax.server.serial import command
from relaax.server.serial.memory_bridge import MemoryBridge


class Counting(Learner):
    """Keeps the sizes of the batches of a mixed table."""

    def __init__(self):
        self.inputs = {"mixed": Input(4, lambda sample: len(sample.keys))}
        self.sizes = []

    def steps(self, batches):
        self.sizes.append(batches["mixed"])
        yield Step()

    def values(self):
        return {DEFAULT: np.zeros(2, np.float32)}


class Bridge(MemoryBridge):
    def push(self, update, policy="default"):
        return self.pull()


def sink_of(learner, limiter, resources):
    tables = {
        "newest": TableSpec(Transitions(), "lifo", Limiter(min_items=2)),
        "all": TableSpec(Transitions(), "uniform", limiter),
        "mixed": MixedSpec({"newest": 0.5, "all": 0.5}),
    }
    algorithm = SimpleNamespace(
        make_learner=lambda config, seed: learner,
        replay_spec=lambda config: ReplaySpec(SCHEMA, 256, tables),
    )
    section = AlgorithmSection(Path("mine"), {"seed": 1}, Path("my.yaml"))
    configuration = Configuration(LearnerOptions(), section)
    processes = SimpleNamespace(servers={"relaax-learner": configuration})
    config = SimpleNamespace(units=dict)
    bridge = Bridge(parameter_service())
    return command._learner(processes, algorithm, config, bridge, resources, None)  # noqa: SLF001 - made of all parts


@pytest.mark.parametrize(
    ("limiter", "expected"),
    [(Limiter(), 1), (Limiter(2, samples_per_insert=1.0, error_buffer=4.0), 5)],
    ids=["free", "ratio"],
)
def test_a_mixed_table_is_drawn_from_and_the_ratio_of_its_parts_holds(limiter, expected):
    learner = Counting()
    with ExitStack() as resources:
        sink = sink_of(learner, limiter, resources)
        rows, flags = steps(0, 10)
        sink.put(StepBatch(np.zeros(len(flags), np.int64), flags, rows))
    assert learner.sizes == [4] * expected
