"""Whatever is configured, steps come and batches are drawn in turn, for as long as both are asked.

A replay that takes no steps until it is drawn from, and cannot be drawn from until steps come,
stands for ever.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_cases import SCHEMA, steps

from relaax.replay.limiter import Limiter
from relaax.replay.replay import NotReady
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.storage import TERMINATED
from relaax.replay.views import Transitions, Windows


class Played:
    """Environments that each have ``run`` steps ready at a time, and a learner."""

    def __init__(self, replay, table, batch, environments, run, episode):
        self._replay, self._table, self._batch = replay, table, batch
        self._run, self._episode = run, episode
        self._next = [0] * environments
        self._writer = f"writer {replay.stored}"
        replay.open_writer(self._writer, SCHEMA)

    def go_on(self, most_rounds):
        """Play and learn in turn, until both have gone on three times."""
        took = learnt = idle = 0
        for _ in range(most_rounds):
            before = self._replay.stored
            for number in range(len(self._next)):
                self._play(number)
            has_taken, drawn = self._replay.stored > before, self._learn()
            idle = 0 if has_taken or drawn else idle + 1
            assert idle < 2, "neither goes on"
            took, learnt = took + has_taken, learnt + (drawn > 0)
            if min(took, learnt) >= 3:
                return self._replay.close_writer(self._writer)
        pytest.fail(f"steps were taken {took} times, and batches drawn {learnt} times")

    def _play(self, number):
        first = self._next[number]
        start, end = first % self._episode == 0, (first + self._run) % self._episode == 0
        rows, flags = steps(first, self._run, start=start, end=TERMINATED * end)
        with suppress(NotReady):
            self._next[number] = self._replay.append(self._writer, number, first, rows, flags)

    def _learn(self):
        """Draw all that may be drawn now, up to a hundred batches; return how many were."""
        for drawn in range(100):
            try:
                keys = self._replay.sample(self._table, self._batch, 0.0).keys
            except NotReady:
                return drawn
            assert len(keys) == self._batch
        return 100


few = settings(derandomize=True, max_examples=100, deadline=None, database=None)

SIZES = st.integers(1, 40)

LIMITERS = st.builds(
    lambda start, ratio, buffer: Limiter(
        min_items=start,
        samples_per_insert=ratio,
        error_buffer=0.0 if ratio is None else max(1.0, ratio) * buffer,
    ),
    start=st.integers(1, 150),
    ratio=st.sampled_from([None, 0.5, 1.0, 3.0, 64.0]),
    buffer=st.sampled_from([1.0, 2.0, 16.0]),
)

VIEWS = st.one_of(
    st.builds(lambda n, stack: Transitions(n, 0.9, stack), st.integers(1, 5), st.integers(1, 3)),
    st.builds(Windows, st.integers(1, 5), st.integers(1, 5)),
)


@st.composite
def specs(draw):
    """A replay whose limits contradict one another as far as they may, and the size of a batch."""
    batch, selector = draw(SIZES), draw(st.sampled_from(["uniform", "prioritized", "fifo"]))
    limiter = draw(LIMITERS)
    if selector == "fifo":  # items that are drawn once wait for a batch
        limiter = Limiter(batch, draw(st.one_of(st.none(), st.integers(batch, 2 * batch))))
    spec = ReplaySpec(
        SCHEMA, draw(st.integers(8, 150)), {"all": TableSpec(draw(VIEWS), selector, limiter)}
    )
    return spec if selector == "fifo" else spec.share(draw(st.integers(1, 3))), batch


def made(spec):
    return spec.make(np.random.default_rng(0), 60.0)


def rounds_for(table, batch):
    """More than it takes until draws may begin, and until the ratio allows three of them."""
    limiter = table.limiter
    due = 20 + (8 * batch + limiter.error_buffer) / (limiter.samples_per_insert or 1.0)
    return table.view.stride * round(limiter.min_items + due)


@few
@given(
    sized=specs(), environments=st.integers(1, 12), run=SIZES, episode=SIZES,
    resumed_as=st.one_of(st.none(), LIMITERS), evicts=st.booleans(),
)  # fmt: skip
def test_no_replay_stands_still(sized, environments, run, episode, resumed_as, evicts):
    spec, batch = sized
    table, replay = spec.tables["all"], made(spec)
    size = batch, environments, run, episode
    if not replay.most_environments:  # such a one is refused when it is made
        return
    Played(replay, "all", *size).go_on(rounds_for(table, batch))
    if evicts:
        replay.evict(older_than_s=-1.0)
    if resumed_as is not None and table.selector != "fifo":
        contents, table = replay.contents(), replace(table, limiter=resumed_as)
        replay = made(replace(spec, tables={"all": table}))
        replay.restore(contents)
    Played(replay, "all", *size).go_on(2 * rounds_for(table, batch))
