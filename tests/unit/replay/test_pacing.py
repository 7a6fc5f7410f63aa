"""Rollouts are begun when it is certain that they are young enough when they are learnt from."""

import numpy as np
import pytest

from relaax.errors import ConfigurationError
from relaax.replay.limiter import Limiter
from relaax.replay.replay import NotReady
from relaax.replay.schema import Column, Schema
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.storage import START
from relaax.replay.views import Rollouts

LENGTH, BATCH = 4, 4

#: A row between two rollouts is learnt from in neither: see Rollouts.
STRIDE = LENGTH + 1


class Trainees:
    """Processes with environments, and a learner; each process has its own speed."""

    def __init__(self, staleness, processes, environments=1):
        view = Rollouts(LENGTH, overlap=-1)
        table = TableSpec(
            view, "fifo", Limiter(BATCH, BATCH * (staleness + 1)),
            holds_drawn=True, keeps_undrawn=True, staleness=staleness,
        )  # fmt: skip
        schema = Schema({"version": Column(np.dtype(np.int64))})
        self.replay = ReplaySpec(schema, 4096, {"rollouts": table}).make(
            np.random.default_rng(0), 60.0
        )
        for process in range(processes):
            self.replay.open_writer(str(process), schema)
        self._environments = environments
        self.version = 0
        self._next = np.zeros(processes, int)
        self.learnt = []

    def act(self, process):
        """Take a step in each environment of a process; return whether it was allowed to."""
        first, environments = int(self._next[process]), range(self._environments)
        if first % STRIDE == 0:
            try:
                self.replay.admit(str(process), list(environments), self.version)
            except NotReady:
                return False
        for environment in environments:
            flags = np.array([START if first == 0 else 0], np.uint8)
            rows = {"version": np.array([self.version])}
            self.replay.append(str(process), environment, first, rows, flags)
        self._next[process] += 1
        return True

    def learn(self):
        """Draw a batch, if there is one, and publish; return whether there was one."""
        self.replay.at_version("rollouts", self.version)
        try:
            sample = self.replay.sample("rollouts", BATCH, 0.0)
        except NotReady:
            return False
        begun = sample.columns["version"][0]
        self.learnt.append((self.version - begun).tolist())
        self.version += 1
        return True

    def play(self, speeds, turns, random):
        """Let each process act with its probability in each turn, and the learner learn."""
        for _ in range(turns):
            for process in np.flatnonzero(random.random(len(speeds)) < speeds).tolist():
                self.act(process)
            if random.random() < 0.5:
                self.learn()


@pytest.mark.parametrize("staleness", [0, 1, 2, 5])
@pytest.mark.parametrize("processes", [1, 3, 4, 9])
def test_no_rollout_is_older_than_the_bound_however_slow_some_are(staleness, processes):
    trainees = Trainees(staleness, processes)
    speeds = np.geomspace(0.02 if processes > 1 else 1, 1, processes)
    trainees.play(speeds, 1000, np.random.default_rng(1))
    assert len(trainees.learnt) >= 10
    assert max(map(max, trainees.learnt)) <= staleness
    assert min(map(min, trainees.learnt)) >= 0


def test_with_0_acting_and_learning_take_turns():
    trainees = Trainees(0, 6)
    assert [trainees.act(process) for process in range(6)] == [True] * 4 + [False] * 2
    for _ in range(LENGTH):  # a rollout needs the row after it
        assert not trainees.learn()
        assert [trainees.act(process) for process in range(6)] == [True] * 4 + [False] * 2
    assert not any(trainees.act(process) for process in range(6))
    assert trainees.learn()
    assert trainees.learnt == [[0] * 4]
    assert [trainees.act(process) for process in range(6)] == [True] * 4 + [False] * 2


def test_acting_is_ahead_by_so_many_batches_and_no_more():
    trainees = Trainees(2, 40)
    assert sum(trainees.act(process) for process in range(40)) == 3 * BATCH


@pytest.mark.parametrize("environments", [3, 6, 8])
@pytest.mark.parametrize("staleness", [0, 1])
def test_processes_with_more_environments_than_fit_go_on_and_that_is_counted(
    environments, staleness
):
    trainees = Trainees(staleness, 2, environments)
    trainees.play(np.array([0.3, 1.0]), 500, np.random.default_rng(2))
    assert len(trainees.learnt) >= 20
    exceeds = max(map(max, trainees.learnt)) > staleness
    exceeded = trainees.replay.tables["rollouts"].pacing.exceeded
    assert exceeded or not exceeds


def test_what_ends_or_is_released_is_not_waited_for():
    trainees = Trainees(0, 5)
    for process in range(4):
        trainees.act(process)
    trainees.replay.close_writer("0")
    trainees.replay.release("1", [0])
    assert [trainees.act(4), trainees.act(4)] == [True, True]
    for _ in range(3 * LENGTH):
        for process in (2, 3, 4):
            trainees.act(process)
    assert trainees.learn()
    assert trainees.learnt == [[0] * 4]


def test_a_learner_that_goes_on_from_an_older_version_is_no_hindrance():
    trainees = Trainees(1, 4)
    random = np.random.default_rng(3)
    trainees.play(np.full(4, 0.5), 600, random)
    trainees.version, trainees.learnt = 3, []
    trainees.play(np.full(4, 0.5), 600, random)
    assert len(trainees.learnt) > 20
    assert max(map(max, trainees.learnt[8:])) <= 1


def test_a_process_whose_steps_are_on_their_way_counts_as_acting():
    trainees = Trainees(0, 5)
    for process in range(4):
        for _ in range(STRIDE - (process == 0)):
            trainees.act(process)
    with pytest.raises(NotReady):  # the last step of its rollout is on its way
        trainees.replay.admit("0", [0], 0, has_delivered=False)
    assert not trainees.act(1)


def test_rollouts_that_nobody_has_admitted_do_not_spoil_those_that_follow():
    trainees = Trainees(0, 5)
    random = np.random.default_rng(4)
    trainees.play(np.full(5, 0.5), 200, random)
    rows = {"version": np.zeros(STRIDE, np.int64)}
    trainees.replay.open_writer("away", trainees.replay.schema)
    trainees.replay.append("away", 0, 0, rows, np.zeros(STRIDE, np.uint8))
    trainees.play(np.full(5, 0.5), 400, random)
    assert max(map(max, trainees.learnt)) > 0
    assert max(map(max, trainees.learnt[-5:])) == 0
    assert trainees.replay.tables["rollouts"].pacing.exceeded == 0


def test_a_process_without_the_newest_parameters_waits_for_them():
    trainees = Trainees(0, 1)
    trainees.replay.at_version("rollouts", 1)
    assert not trainees.act(0)
    trainees.version = 1
    assert trainees.act(0)


def test_a_refusal_says_who_waits_for_whom():
    trainees = Trainees(0, 5)
    for process in range(4):
        trainees.act(process)
    with pytest.raises(NotReady, match="learning is behind acting: 0 rollouts are complete and 4"):
        trainees.replay.admit("4", [0], 0)
    with pytest.raises(NotReady, match="4 rollouts are under way"):
        trainees.replay.sample("rollouts", BATCH, 0.0)


def test_several_servers_are_refused():
    table = TableSpec(Rollouts(LENGTH), "fifo", Limiter(BATCH), staleness=0)
    with pytest.raises(ConfigurationError, match="counts the rollouts at one server, and not at 2"):
        table.share(2)
